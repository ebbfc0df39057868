// keel inspect: prints the contents of a file.
#include <absl/strings/match.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <algorithm>
#include <cstdio>
#include <iostream>

#include <keel/framework/base/internal/crc32c.h>
#include <keel/framework/base/internal/text.h>
#include <keel/layers/visualization/visualization.h>
#include <keel/savedmodel/checkpoint/internal/checkpoint_file.h>
#include <keel/savedmodel/keras/internal/zip_file.h>
#include <keel/savedmodel/mapped/mapped_tables.h>
#include <keel/savedmodel/saved_model.h>
#include <keel/savedmodel/tool/commands.h>
#include <keel/savedmodel/tool/model_file.h>
#include <keel/savedmodel/tool/printable_output.h>
#include <keel/savedmodel/tool/stored_table.h>

namespace keel::tool {
namespace {

constexpr int64_t kMetadataLimit = int64_t{64} << 20;

void print_line(const std::string& what, const std::string& value) {
  std::cout << what << std::string(what.size() < 11 ? 12 - what.size() : 1, ' ')
            << printable_name(value) << '\n';
}

// Returns the checksum of the bytes of the values in memory, or of strings with their lengths.
std::string checksum(const Tensor& value) {
  std::string bytes;
  if (value.dtype() == DType::kString) {
    for (const std::string& text : value.data<std::string>()) bytes += str(text.size(), ' ', text);
  }
  const std::string_view view =
      value.dtype() == DType::kString
          ? std::string_view(bytes)
          : std::string_view(reinterpret_cast<const char*>(value.raw().data()), value.raw().size());
  return absl::StrFormat("%08x", crc32c(view));
}

// Prints names, checksums, dtypes and shapes, and the values of scalars.
void print_values(const char* title, const std::vector<StoredValue>& values) {
  std::cout << '\n' << title << (values.empty() ? "  none" : "") << '\n';
  size_t width = 0;
  std::vector<std::string> names;
  for (const StoredValue& value : values) {
    names.push_back(printable_name(value.name));
    width = std::max(width, names.back().size());
  }
  size_t next = 0;
  for (const StoredValue& stored : values) {
    const Tensor value = stored.get();
    std::string name = std::move(names[next++]);
    name.resize(width, ' ');
    std::cout << "  " << name << "  crc32c " << checksum(value) << "  " << value.dtype() << ' '
              << value.shape();
    if (value.rank() == 0) std::cout << " = " << value_text(value, 0);
    std::cout << '\n';
  }
}

std::string spec_text(const std::map<std::string, TensorSpec>& specs) {
  constexpr const char* kLayouts[] = {"", "ragged ", "sparse "};
  return absl::StrJoin(specs, ", ", [&](std::string* out, const auto& entry) {
    const auto& [name, spec] = entry;
    *out +=
        str(name, ": ", kLayouts[static_cast<size_t>(spec.layout)], spec.dtype, ' ', spec.shape);
  });
}

void print_signatures(const ModelHandle& model, const std::string& path) {
  std::cout << "\nsignatures";
  try {
    const Signatures found = signatures(model, path);
    std::cout << '\n';
    for (const auto& [name, signature] : found) {
      std::cout << "  " << name << '(' << spec_text(signature.inputs()) << ") -> {"
                << spec_text(signature.outputs()) << "}\n";
    }
  } catch (const ValueError& error) {
    std::cout << "  none: " << error.what() << '\n';
  }
}

// Prints how a server gets the large tables of the model: it loads without the optimizer, too.
void print_tables(const std::string& path) {
  const auto mapped = std::make_shared<MappedTables>();
  load_model(path, {.compile = false, .mapped_tables = mapped});
  const std::vector<MappedTables::Table> tables = mapped->tables();
  std::cout << "\ntables of 1 MiB and more, as keel serve loads them"
            << (tables.empty() ? "  none" : "") << '\n';
  size_t width = 0;
  for (const MappedTables::Table& table : tables) width = std::max(width, table.name.size());
  for (const MappedTables::Table& table : tables) {
    std::cout << "  " << table.name << std::string(width - table.name.size(), ' ') << "  "
              << table.bytes << " bytes  "
              << (table.obstacle.empty() ? "read in place" : "copied: " + table.obstacle) << '\n';
  }
}

std::string keras_version(const std::string& path, FileKind kind) {
  if (kind == FileKind::kArchive) {
    const ZipFile archive(path);
    if (!archive.has("metadata.json")) return "";
    const Config metadata = parse_json(archive.read("metadata.json", kMetadataLimit));
    const Config* version = metadata.find("keras_version");
    return version != nullptr && version->is_string() ? version->string() : "";
  }
  const Hdf5File file(path);
  return file.has_attribute("/", "keras_version") ? file.string_attribute("/", "keras_version")
                                                  : "";
}

void print_kind(const std::string& path, FileKind kind) {
  print_line("file", path);
  const std::string version =
      kind == FileKind::kCheckpoint ? std::string() : keras_version(path, kind);
  print_line("format", describe(kind) + (version.empty() ? "" : ", of Keras " + version));
}

void inspect_model(const std::string& path, FileKind kind) {
  const auto [model, not_compiled] = load_whole_model("keel inspect", path);
  print_kind(path, kind);
  print_line("model", model->class_name() + " " + model->name());
  const std::shared_ptr<Optimizer> optimizer = model->optimizer();
  if (!not_compiled.empty()) {
    print_line("training", "cannot be read: " + not_compiled);
  } else if (model->compiled()) {
    print_line("training", to_json(model->get_compile_config()));
  } else {
    print_line("training", "not compiled");
  }
  std::cout << '\n';
  summary(*model, {.line_length = 100, .expand_nested = true}, std::cout);
  const StoredValues values = values_of(*model);
  print_values("weights", values.weights);
  if (has_new_optimizer(*model)) {
    std::cout << "\noptimizer " << optimizer->name() << "  " << kNewOptimizer << '\n';
  } else if (optimizer != nullptr) {
    print_values(("optimizer " + optimizer->name()).c_str(), values.optimizer);
  }
  print_dynamic_tables(tables_of(*model));
  print_signatures(model, path);
  print_tables(path);
}

void inspect_values(const std::string& path, FileKind kind) {
  StoredValues values = values_of(path, kind);
  const std::vector<StoredTable> tables = take_tables(values);
  print_kind(path, kind);
  if (kind == FileKind::kCheckpoint) {
    print_line("step", std::to_string(CheckpointReader(path).step()));
  }
  print_values("weights", values.weights);
  print_values("optimizer", values.optimizer);
  print_dynamic_tables(tables);
}

// Finds a value by its whole name, or by a part of its name that no other one contains. Searches
// the weights before the optimizer's state.
const StoredValue& value_named(const std::string& path, const StoredValues& values,
                               const std::string& name) {
  for (const auto* list : {&values.weights, &values.optimizer}) {
    const auto at = std::ranges::find(*list, name, &StoredValue::name);
    if (at != list->end()) return *at;
  }
  for (const auto* list : {&values.weights, &values.optimizer}) {
    const StoredValue* found = nullptr;
    std::vector<std::string> names;
    for (const StoredValue& value : *list) {
      if (!absl::StrContains("/" + value.name + "/", "/" + name + "/")) continue;
      found = &value;
      names.push_back(value.name);
    }
    if (names.size() == 1) return *found;
    if (!names.empty()) {
      throw ValueError(path, ": '", name, "' is ambiguous; it may be any of ",
                       absl::StrJoin(names, ", "));
    }
  }
  throw ValueError(path, ": the file has no weight '", name,
                   "'; run keel inspect on the file to list them");
}

void print_row(const std::string& path, FileKind kind, const std::string& table,
               const std::string& id) {
  StoredValues values;
  std::vector<StoredTable> tables;
  if (has_model(kind)) {
    const ModelHandle model = load_whole_model("keel inspect", path).model;
    tables = tables_of(*model);
    values = values_of(*model);
  } else {
    values = values_of(path, kind);
    tables = take_tables(values);
  }
  if (const StoredTable* const found = table_named(tables, table)) return print_id(*found, id);
  const auto row = parse_number<int64_t>(id);
  if (!row) throw ValueError("keel inspect: the ID of --row must be a number, received '", id, "'");
  const StoredValue& stored = value_named(path, values, table);
  const Tensor found = stored.row(*row);
  std::cout << stored.name << '[' << *row << "] =";
  for (int64_t i = 0; i < found.size(); ++i) std::cout << ' ' << value_text(found, i);
  std::cout << '\n';
}

struct InspectFlags {
  std::string file;
  std::vector<std::string> row;  // table and id
};

int run(const InspectFlags& flags) {
  const std::string path = file_of(flags.file);
  const FileKind kind = kind_of_file(path);
  if (!flags.row.empty()) {
    print_row(path, kind, flags.row[0], flags.row[1]);
  } else if (has_model(kind)) {
    inspect_model(path, kind);
  } else {
    inspect_values(path, kind);
  }
  return 0;
}

}  // namespace

void add_inspect(CommandLine& keel) {
  CommandLine& command = keel.add_command(
      "inspect",
      "Prints the layers, weights, optimizer state, signatures and large tables of a file.",
      "The checksums of weights (CRC-32C of the values) do not depend on the format of the file.");
  const auto flags = std::make_shared<InspectFlags>();
  command.argument("FILE", &flags->file,
                   "model, weights, a checkpoint, or a folder of checkpoints, of which the newest "
                   "one is used");
  command.option(
      "--row", &flags->row,
      "print one row of a weight instead, or of a table for unbounded ids its state of an "
      "id; TABLE is the name of the weight, or a part of it between '/'",
      {.placeholder = "TABLE ID"});
  command.set_run([flags] { return run(*flags); });
}

}  // namespace keel::tool
