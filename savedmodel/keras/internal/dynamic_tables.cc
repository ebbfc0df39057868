#include <keel/savedmodel/keras/internal/dynamic_tables.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <set>

#include <keel/framework/base/errors.h>

namespace keel {
namespace {

template <class T>
Tensor elements_of_rows(const Tensor& of, const std::vector<int64_t>& positions) {
  const auto values = of.data<T>();
  const int64_t width = of.rank() == 2 ? of.dim(1) : 1;
  std::vector<T> out;
  out.reserve(positions.size() * width);
  for (const int64_t i : positions) {
    out.insert(out.end(), values.begin() + i * width, values.begin() + (i + 1) * width);
  }
  return Tensor::from(out, of.shape().with(0, std::ssize(positions)));
}

Tensor selected_rows(const Tensor& of, const std::vector<int64_t>& positions) {
  if (of.dtype() == DType::kString) return elements_of_rows<std::string>(of, positions);
  if (of.dtype() == DType::kInt64) return elements_of_rows<int64_t>(of, positions);
  return elements_of_rows<float>(of, positions);
}

void collect_tables_of(const Layer& layer, std::set<const Layer*>& seen,
                       std::vector<NamedDynamicTable>& out) {
  if (!seen.insert(&layer).second) return;
  for (NamedDynamicTable& table : dynamic_tables_of(layer)) out.push_back(std::move(table));
  if (const auto* model = dynamic_cast<const Model*>(&layer)) {
    for (const auto& child : model->layers()) collect_tables_of(*child, seen, out);
  }
  for (const auto& child : layer.sublayers()) collect_tables_of(*child, seen, out);
}

template <class Key>
bool ascends(const Tensor& keys) {
  const auto values = keys.data<Key>();
  return std::ranges::adjacent_find(values, [](const Key& a, const Key& b) { return !(a < b); }) ==
         values.end();
}

// Reads the datasets of one table.
class DynamicTableReader {
 public:
  DynamicTableReader(const Hdf5File& file, const std::vector<std::string>& datasets,
                     const NamedDynamicTable& table)
      : file_(file), datasets_(datasets), table_(table) {}

  DynamicTableState read() const {
    DynamicTableState out = table_.table.state();
    out.keys = keys();
    const int64_t n = out.keys.size();
    check_room(n);
    out.rows = rows(1, n);
    out.slots.clear();
    out.count = counts(n);
    out.last = Tensor::zeros({n}, DType::kInt64);
    out.born = out.last;
    out.pending_keys = selected_rows(out.keys, {});
    out.pending_count = Tensor::zeros({0}, DType::kInt64);
    out.pending_last = out.pending_count;
    out.sketch.assign(out.sketch.size(), 0);
    out.fallback = rows(3, {});
    out.fallback_slots.clear();
    out.statistics = {};
    out.statistics.assigned = n;
    out.clock = 0;
    return out;
  }

 private:
  template <class... What>
  [[noreturn]] void damaged(int part, const What&... what) const {
    throw IoError(file_.path(), ", ", datasets_[part], ": ", what...,
                  "; the file is damaged, save the model again");
  }
  TensorSpec spec(int part) const {
    if (!file_.has(datasets_[part])) damaged(part, "the dataset is missing");
    return file_.spec(datasets_[part]);
  }

  Tensor keys() const {
    const TensorSpec stored = spec(0);
    const bool strings = table_.table.options().key == KeyType::kString;
    if (strings ? stored.dtype != DType::kString : stored.dtype != DType::kInt64) {
      throw ValueError(file_.path(), ", ", datasets_[0], ": table '", table_.name, "' of layer '",
                       table_.layer, "' has ids of type ", strings ? "string" : "int64",
                       ", the file has ", stored.dtype);
    }
    if (stored.shape.rank() != 1) damaged(0, "ids must have rank 1, received ", stored.shape);
    Tensor out = file_.read(datasets_[0]);
    if (!(strings ? ascends<std::string>(out) : ascends<int64_t>(out))) {
      damaged(0, "ids must ascend and be distinct");
    }
    return out;
  }

  void check_room(int64_t n) const {
    const DynamicVocabulary& options = table_.table.options();
    if (options.capacity == 0 || n <= options.capacity) return;
    if (options.eviction.policy != Eviction::Policy::kNone) return;
    throw ValueError(file_.path(), ", ", datasets_[0], ": ", n, " rows do not fit into table '",
                     table_.name, "' with capacity ", options.capacity,
                     " and no eviction policy; increase capacity or set Eviction::lru or lfu");
  }

  Tensor rows(int part, std::optional<int64_t> n) const {
    const TensorSpec stored = spec(part);
    const int64_t dim = table_.table.dim();
    if (stored.shape.rank() != 2 || stored.dtype != DType::kFloat32 ||
        stored.shape[0] != n.value_or(stored.shape[0])) {
      damaged(part, "must be float32 with shape [", n ? absl::StrCat(*n) : "rows", ", ", dim,
              "], received ", stored.dtype, " ", stored.shape);
    }
    if (stored.shape[1] != dim) {
      throw ValueError(file_.path(), ", ", datasets_[part], ": table '", table_.name,
                       "' of layer '", table_.layer, "' has dim ", dim, ", the file has ",
                       stored.shape[1]);
    }
    return file_.read(datasets_[part]);
  }

  Tensor counts(int64_t n) const {
    const TensorSpec stored = spec(2);
    const Shape shape = {n};
    if (stored.shape != shape || stored.dtype != DType::kInt64) {
      damaged(2, "counts must be int64 with shape ", shape, ", received ", stored.dtype, " ",
              stored.shape);
    }
    Tensor out = file_.read(datasets_[2]);
    for (const int64_t count : out.data<int64_t>()) {
      if (count < 0 || count > std::numeric_limits<uint32_t>::max()) {
        damaged(2, "counts must be in [0, 2^32), received ", count);
      }
    }
    return out;
  }

  const Hdf5File& file_;
  const std::vector<std::string>& datasets_;
  const NamedDynamicTable& table_;
};

}  // namespace

std::vector<NamedDynamicTable> dynamic_tables_of(const Layer& layer) {
  std::vector<NamedDynamicTable> out;
  const auto* const owner = dynamic_cast<const DynamicTableOwner*>(&layer);
  if (owner == nullptr) return out;
  for (const auto& [name, table] : owner->dynamic_tables()) {
    out.push_back({.layer = layer.name(), .name = name, .table = table});
  }
  return out;
}

std::vector<NamedDynamicTable> all_dynamic_tables(const Layer& model) {
  std::set<const Layer*> seen;
  std::vector<NamedDynamicTable> out;
  collect_tables_of(model, seen, out);
  return out;
}

void check_min_count(const std::string& caller, const Model& model, const MinCount& min_count) {
  const std::vector<NamedDynamicTable> tables = all_dynamic_tables(model);
  for (const auto& [name, count] : min_count.by_table()) {
    const auto is_it = [&](const NamedDynamicTable& table) {
      return table.name == name || table.layer + "/" + table.name == name;
    };
    if (std::ranges::any_of(tables, is_it)) continue;
    throw ValueError(caller, ": min_count names '", name,
                     "', which is not a table with dynamic ids of the model");
  }
}

DynamicTableState frequent_rows(const DynamicTable& table, int64_t min_count) {
  DynamicTableState out = table.state();
  const auto counts = out.count.data<int64_t>();
  std::vector<int64_t> kept;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] >= min_count) kept.push_back(static_cast<int64_t>(i));
  }
  if (kept.size() == counts.size()) return out;
  for (Tensor* const part : {&out.keys, &out.rows, &out.count, &out.last, &out.born}) {
    *part = selected_rows(*part, kept);
  }
  for (auto& [name, slot] : out.slots) slot = selected_rows(slot, kept);
  return out;
}

std::vector<std::function<Tensor()>> dynamic_parts(const NamedDynamicTable& table,
                                                   const MinCount& min_count) {
  using State = DynamicTableState;
  constexpr std::array<Tensor State::*, kDynamicParts.size()> kMembers = {
      &State::keys, &State::rows, &State::count, &State::fallback};
  const auto copy = std::make_shared<std::optional<State>>();
  const int64_t least = min_count.of(table.layer, table.name);
  std::vector<std::function<Tensor()>> out;
  for (size_t part = 0; part < kMembers.size(); ++part) {
    out.emplace_back([copy, from = table.table, least, member = kMembers[part],
                      is_last = part + 1 == kMembers.size()] {
      if (!*copy) *copy = frequent_rows(from, least);
      Tensor value = (**copy).*member;
      if (is_last) copy->reset();
      return value;
    });
  }
  return out;
}

DynamicTableState read_dynamic_table(const Hdf5File& file, const std::vector<std::string>& datasets,
                                     const NamedDynamicTable& table) {
  return DynamicTableReader(file, datasets, table).read();
}

}  // namespace keel
