#include <keel/savedmodel/hdf5/hdf5_contents.h>

#include <exception>
#include <optional>

#include <keel/distribute/internal/run_collectively.h>
#include <keel/framework/base/function_ref.h>

namespace keel {
namespace {

// Writes the contents with the writer that `open` creates in rank 0. After an error the values are
// still read, because reading them is collective.
void write_contents(const char* caller, const Hdf5Contents& contents,
                    FunctionRef<void(std::optional<Hdf5Writer>&)> open) {
  distribute::ProcessGroup& group = distribute::processes();
  std::optional<Hdf5Writer> file;
  std::exception_ptr error;
  const auto attempt = [&](const auto& write) {
    if (group.rank() != 0 || error != nullptr) return;
    try {
      const distribute::LongWork work(group, caller);
      write();
    } catch (const std::exception&) {
      error = std::current_exception();
    }
  };
  attempt([&] {
    open(file);
    for (const std::string& name : contents.groups) file->create_group(name);
    for (const Hdf5Contents::Text& t : contents.texts) {
      file->write_attribute(t.object, t.attribute, t.text, t.charset);
    }
  });
  for (const Hdf5Contents::Dataset& dataset : contents.datasets) {
    const Tensor value = dataset.get();
    attempt([&] { file->write(dataset.path, value); });
  }
  attempt([&] {
    for (const Hdf5Contents::List& list : contents.lists) {
      file->write_string_list(list.object, list.attribute, list.values);
    }
    file->commit();
  });
  distribute::run_collectively(group, caller, [&] {
    if (error != nullptr) std::rethrow_exception(error);
  });
}

}  // namespace

void write_hdf5(const char* caller, const std::string& path, const Hdf5Contents& contents) {
  write_contents(caller, contents, [&](auto& file) { file.emplace(path); });
}

std::unique_ptr<const TemporaryFile> write_temporary_hdf5(const char* caller,
                                                          const std::string& path,
                                                          const Hdf5Contents& contents) {
  std::unique_ptr<const TemporaryFile> out;
  write_contents(caller, contents, [&](auto& file) {
    out = std::make_unique<const TemporaryFile>(path);
    file.emplace(*out);
  });
  return out;
}

}  // namespace keel
