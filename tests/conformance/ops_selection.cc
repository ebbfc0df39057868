#include "tests/conformance/case_fields.h"
#include "tests/conformance/ops_arguments.h"

namespace keel::conformance {
namespace {

namespace K = keras_ops;
using Results = std::vector<Tensor>;

int axis_or(OpArguments& a, int otherwise) {
  return static_cast<int>(a.integer("axis", otherwise));
}
OpAdapter segment(Tensor (*f)(const Tensor&, const Tensor&, std::optional<int64_t>, bool)) {
  return [f](OpArguments& a) -> Results {
    return {f(a.tensor("data"), a.tensor("segment_ids"), a.maybe_integer("num_segments"),
              a.boolean("sorted", false))};
  };
}
Results top_k(OpArguments& a) {
  const auto [values, positions] = K::top_k(a.tensor("x"), a.integer("k", 0));
  return {values, positions};
}
// Only the groups before, at and after kth are defined: each is sorted.
Results argpartition(OpArguments& a) {
  const int64_t kth = a.integer("kth", 0);
  std::vector<int32_t> positions =
      K::argpartition(a.tensor("x"), kth, axis_or(a, -1)).to_vector<int32_t>();
  std::sort(positions.begin(), positions.begin() + kth);
  std::sort(positions.begin() + kth + 1, positions.end());
  return {Tensor::from(positions, {static_cast<int64_t>(positions.size())})};
}
Results unique(OpArguments& a) {
  const K::Unique found =
      K::unique(a.tensor("x"), {.sorted = a.boolean("sorted", true),
                                .return_index = a.boolean("return_index", false),
                                .return_inverse = a.boolean("return_inverse", false),
                                .return_counts = a.boolean("return_counts", false),
                                .axis = a.axis(),
                                .size = a.maybe_integer("size"),
                                .fill_value = a.maybe_number("fill_value")});
  Results out = {found.values};
  for (const Tensor& optional : {found.index, found.inverse, found.counts}) {
    if (optional) out.push_back(optional);
  }
  return out;
}
Results where(OpArguments& a) {
  if (!a.has("x1")) return K::where(a.tensor("condition"));
  return {K::where(a.tensor("condition"), a.operand("x1"), a.operand("x2"))};
}
K::Key key_of(const Config& item) {
  if (item.is_number()) return item.integer();
  const Config::List& parts = item["slice"].items();
  const auto part = [&](size_t i) {
    return parts.at(i).is_null() ? std::nullopt : std::optional(parts[i].integer());
  };
  return K::Slice{.start = part(0), .stop = part(1), .step = part(2)};
}
Results get_item(OpArguments& a) {
  const Config& key = a.config("key");
  std::vector<K::Key> keys;
  if (key.is_list()) {
    for (const Config& item : key.items()) keys.push_back(key_of(item));
  } else {
    keys.push_back(key_of(key));
  }
  return {K::get_item(a.tensor("x"), keys)};
}
Results scatter_update(OpArguments& a) {
  std::optional<std::string> reduction;
  if (a.has("reduction")) reduction = a.string("reduction", "");
  return {
      K::scatter_update(a.tensor("inputs"), a.tensor("indices"), a.tensor("updates"), reduction)};
}
Tensor of_integers(const std::vector<int64_t>& values, const Shape& shape) {
  return Tensor::from(values, shape);
}
Results shape(OpArguments& a) {
  const Shape found = K::shape(a.tensor("x"));
  return {of_integers({found.dims().begin(), found.dims().end()}, {found.rank()})};
}

OpAdapters sorting_adapters() {
  return {
      {"sort", [](OpArguments& a) -> Results { return {K::sort(a.tensor("x"), axis_or(a, -1))}; }},
      {"argsort",
       [](OpArguments& a) -> Results { return {K::argsort(a.tensor("x"), axis_or(a, -1))}; }},
      {"argpartition", argpartition},
      {"top_k", top_k},
      {"in_top_k",
       [](OpArguments& a) -> Results {
         return {K::in_top_k(a.tensor("targets"), a.tensor("predictions"), a.integer("k", 0))};
       }},
      {"searchsorted",
       [](OpArguments& a) -> Results {
         return {K::searchsorted(a.tensor("sorted_sequence"), a.tensor("values"),
                                 a.string("side", "left"))};
       }},
      {"digitize",
       [](OpArguments& a) -> Results { return {K::digitize(a.tensor("x"), a.tensor("bins"))}; }},
      {"nonzero", [](OpArguments& a) -> Results { return K::nonzero(a.tensor("x")); }},
      {"unique", unique},
      {"take",
       [](OpArguments& a) -> Results {
         return {K::take(a.tensor("x"), a.tensor("indices"), a.axis())};
       }},
      {"take_along_axis",
       [](OpArguments& a) -> Results {
         return {K::take_along_axis(a.tensor("x"), a.tensor("indices"), a.axis())};
       }},
      {"where", where},
      {"select",
       [](OpArguments& a) -> Results {
         return {K::select(a.tensors("condlist"), a.tensors("choicelist"),
                           a.maybe_operand("default").value_or(K::Operand(0)))};
       }},
      {"unravel_index", [](OpArguments& a) -> Results {
         return K::unravel_index(a.tensor("indices"), a.shape("shape"));
       }}};
}

OpAdapters core_adapters() {
  return {{"shape", shape},
          {"ndim",
           [](OpArguments& a) -> Results { return {of_integers({K::ndim(a.tensor("x"))}, {})}; }},
          {"size",
           [](OpArguments& a) -> Results { return {of_integers({K::size(a.tensor("x"))}, {})}; }},
          {"dtype",
           [](OpArguments& a) -> Results {
             return {Tensor::scalar(std::string(name_of(K::dtype(a.tensor("x")))))};
           }},
          {"is_tensor",
           [](OpArguments& a) -> Results { return {Tensor::scalar(K::is_tensor(a.tensor("x")))}; }},
          {"cast", [](OpArguments& a) -> Results { return {K::cast(a.tensor("x"), *a.dtype())}; }},
          {"saturate_cast",
           [](OpArguments& a) -> Results { return {K::saturate_cast(a.tensor("x"), *a.dtype())}; }},
          {"view", [](OpArguments& a) -> Results { return {K::view(a.tensor("x"), a.dtype())}; }},
          {"stop_gradient",
           [](OpArguments& a) -> Results { return {K::stop_gradient(a.tensor("variable"))}; }},
          {"get_item", get_item},
          {"slice",
           [](OpArguments& a) -> Results {
             return {K::slice(a.tensor("inputs"), a.integers("start_indices"), a.shape("shape"))};
           }},
          {"slice_update",
           [](OpArguments& a) -> Results {
             return {K::slice_update(a.tensor("inputs"), a.integers("start_indices"),
                                     a.tensor("updates"))};
           }},
          {"scatter",
           [](OpArguments& a) -> Results {
             return {K::scatter(a.tensor("indices"), a.tensor("values"), a.shape("shape"))};
           }},
          {"scatter_update", scatter_update},
          {"segment_sum", segment(K::segment_sum)},
          {"segment_max", segment(K::segment_max)},
          {"segment_min", segment(K::segment_min)},
          {"segment_prod", segment(K::segment_prod)}};
}

}  // namespace

OpAdapters selection_adapters() {
  OpAdapters out = sorting_adapters();
  out.merge(core_adapters());
  return out;
}

}  // namespace keel::conformance
