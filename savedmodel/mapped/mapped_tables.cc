#include <keel/savedmodel/mapped/mapped_tables.h>

#include <algorithm>
#include <utility>

#include <keel/framework/base/internal/available_memory.h>
#include <keel/framework/base/internal/mapped_file.h>

namespace keel {
namespace {

constexpr double kSpareFactor = 1.25;  // share of a table's size that must be free to promote it

}  // namespace

MappedTables::MappedTables() = default;
MappedTables::~MappedTables() = default;

std::vector<MappedTables::Table> MappedTables::tables() const {
  const std::lock_guard lock(mutex_);
  std::vector<Table> out;
  for (const Entry& entry : entries_) out.push_back(entry.table);
  return out;
}

int64_t MappedTables::mapped_bytes() const {
  int64_t out = 0;
  for (const Table& table : tables()) out += table.obstacle.empty() ? table.bytes : 0;
  return out;
}

int64_t MappedTables::copied_bytes() const {
  int64_t out = 0;
  for (const Table& table : tables()) out += table.obstacle.empty() ? 0 : table.bytes;
  return out;
}

Tensor MappedTables::map(const std::string& name, const std::string& path, int64_t offset,
                         const TensorSpec& spec) {
  const std::lock_guard lock(mutex_);
  if (file_ == nullptr || file_->path() != path) file_ = std::make_shared<MappedFile>(path);
  const int64_t bytes = spec.shape.size() * static_cast<int64_t>(size_of(spec.dtype));
  const auto size = static_cast<int64_t>(file_->bytes().size());
  // The file may have become shorter since its headers were read.
  if (offset < 0 || bytes > size || offset > size - bytes) {
    throw IoError(path, ", ", name,
                  ": its values end beyond the end of the file; restore the file from a copy");
  }
  const bool known = std::ranges::any_of(
      entries_, [&](const Entry& entry) { return entry.file == file_ && entry.offset == offset; });
  if (!known) {
    entries_.push_back({.table = {.name = name, .bytes = bytes}, .file = file_, .offset = offset});
  }
  return Tensor::from_blob(file_->bytes().data() + offset, spec.shape, spec.dtype, file_);
}

void MappedTables::copied(const std::string& name, int64_t bytes, std::string obstacle) {
  const std::lock_guard lock(mutex_);
  entries_.push_back({.table = {.name = name, .bytes = bytes, .obstacle = std::move(obstacle)}});
}

int64_t MappedTables::promote(const std::function<bool()>& go_on) {
  int64_t moved = 0;
  for (size_t i = 0; go_on(); ++i) {
    std::unique_lock lock(mutex_);
    if (i >= entries_.size()) break;
    const Entry entry = entries_[i];
    lock.unlock();
    if (entry.file == nullptr || entry.table.promoted) continue;
    if (static_cast<double>(available_memory()) <
        kSpareFactor * static_cast<double>(entry.table.bytes)) {
      continue;
    }
    const size_t done = entry.file->promote(static_cast<size_t>(entry.offset),
                                            static_cast<size_t>(entry.table.bytes), go_on);
    moved += static_cast<int64_t>(done);
    lock.lock();
    entries_[i].table.promoted = std::cmp_greater_equal(done, entry.table.bytes);
  }
  return moved;
}

}  // namespace keel
