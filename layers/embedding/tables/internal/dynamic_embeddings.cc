#include <keel/layers/embedding/tables/internal/dynamic_embeddings.h>

#include <algorithm>
#include <numeric>

#include <keel/autodiff/ops.h>
#include <keel/layers/embedding/tables/internal/dynamic_entries.h>

namespace keel {
namespace {

constexpr char kVariable[] = "embeddings";

// Returns 0, 1, ..., n: the row splits of n rows of one id.
Tensor splits_of_single_ids(int64_t n) {
  Tensor out = Tensor::uninitialized({n + 1}, DType::kInt64);
  const auto splits = out.mutable_data<int64_t>();
  std::iota(splits.begin(), splits.end(), 0);
  return out;
}

Tensor row_lengths(const Tensor& row_splits, const Shape& shape) {
  const auto splits = row_splits.data<int64_t>();
  Tensor out = Tensor::uninitialized(shape, DType::kFloat32);
  const auto to = out.mutable_data<float>();
  for (size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(splits[i + 1] - splits[i]);
  return out;
}

}  // namespace

DynamicEmbeddings::DynamicEmbeddings(DynamicEmbeddingsOptions options)
    : options_(std::move(options)) {
  check(options_.dynamic, options_.name);
  check_row_initializers(options_.dynamic, options_.initializer, options_.name);
}

Variable DynamicEmbeddings::build() {
  const Table config = make_table({.dim = options_.dim,
                                   .initializer = options_.initializer,
                                   .name = options_.name,
                                   .dynamic = options_.dynamic});
  auto [variable, keyed] = KeyedVariable::create(*config, kVariable);
  keyed_ = std::move(keyed);
  return variable;
}

Tensor DynamicEmbeddings::look_up(const Tensor& ids, Tensor* present) const {
  const Tensor keys = key_values(options_.caller, options_.dynamic.key, ids);
  FeatureBags bags{.ids = keys,
                   .row_splits = present == nullptr ? Tensor() : splits_of_single_ids(keys.size()),
                   .weights = {},
                   .output_shape = ids.shape()};
  const Tensor rows = keyed_->look_up(bags);
  const Shape shape = ids.shape() + Shape{options_.dim};
  if (present == nullptr) return ops::reshape(ops::gather(rows, bags.ids), shape);
  *present = row_lengths(bags.row_splits, ids.shape());
  return ops::reshape(
      ops::embedding_pool(rows, bags.ids, bags.row_splits, {}, kernels::Combiner::kSum), shape);
}

Tensor DynamicEmbeddings::pool(const IdRows& rows, kernels::Combiner combiner) const {
  FeatureBags bags{.ids = rows.ids,
                   .row_splits = rows.row_splits,
                   .weights = rows.weights,
                   .output_shape = {rows.rows()}};
  const Tensor found = keyed_->look_up(bags);
  return ops::embedding_pool(found, bags.ids, bags.row_splits, bags.weights, combiner);
}

DynamicTable DynamicEmbeddings::table() const {
  if (keyed_ == nullptr)
    throw RuntimeError(options_.caller, ": the layer is not built; call it once first");
  return DynamicTable([keyed = keyed_](bool) -> distribute::KeyedTable& { return keyed->table(); });
}

std::vector<std::pair<std::string, DynamicTable>> DynamicEmbeddings::tables() const {
  std::vector<std::pair<std::string, DynamicTable>> out;
  if (keyed_ != nullptr) out.emplace_back(kVariable, table());
  return out;
}

void DynamicEmbeddings::replace_entry(std::vector<StateEntry>& entries) const {
  if (keyed_ == nullptr) return;
  std::erase_if(entries, [](const StateEntry& entry) { return entry.name == kVariable; });
  for (StateEntry& entry : keyed_entries(kVariable, keyed_)) entries.push_back(std::move(entry));
}

std::vector<std::string> DynamicEmbeddings::notices() const {
  if (keyed_ == nullptr) return {};
  return {dynamic_notice(options_.caller, keyed_->table().statistics())};
}

void refuse_with_dynamic(const std::string& caller, const std::string& option, bool is_set) {
  if (!is_set) return;
  throw ValueError(caller, ": ", option, " requires numbered rows, which a table with dynamic ids ",
                   "does not have; remove ", option, " or dynamic");
}

void refuse_dynamic_table(const std::string& caller, bool is_static) {
  if (!is_static) return;
  throw ValueError("dynamic_table: the table of ", caller,
                   " has a vocabulary; set the option `dynamic`");
}

}  // namespace keel
