#include <absl/strings/str_cat.h>
#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include <keel/framework/base/parallel.h>
#include <keel/framework/data/internal/example_wire.h>
#include <keel/framework/data/tfrecord.h>

namespace keel::data {
namespace {

constexpr const char* kCaller = "parse_example";
constexpr int64_t kExamplesOfBlock = 64;

// A feature with everything that parsing needs.
struct ParsedFeature {
  std::string name;
  DType dtype = DType::kFloat32;
  ListKind kind = ListKind::kMissing;
  Layout layout = Layout::kDense;
  Shape shape = {};            // shape of a dense feature
  int64_t count = 0;           // number of values of a dense feature
  Tensor default_values = {};  // tensor of shape `shape`, or empty
};

Tensor default_values_of(const std::string& caller, const FixedLenFeature& spec) {
  const Tensor& given = spec.default_value;
  if (!given) return {};
  if (given.dtype() != spec.dtype) {
    throw TypeError(caller, ": the default value must have dtype ", spec.dtype, ", received ",
                    given.dtype());
  }
  if (given.shape() == spec.shape) return given;
  if (given.rank() != 0) {
    throw ValueError(caller, ": the default value must be a scalar or have shape ", spec.shape,
                     ", received ", given.shape());
  }
  return visit_any(spec.dtype,
                   [&]<class T>(const T&) { return Tensor::full<T>(spec.shape, given.item<T>()); });
}

ParsedFeature parsed_feature(const std::string& name, const FeatureSpec& spec) {
  const std::string caller = absl::StrCat(kCaller, ": feature '", name, "'");
  ParsedFeature out{.name = name, .dtype = dtype_of(spec), .kind = list_kind_of(dtype_of(spec))};
  if (out.kind == ListKind::kMissing) {
    throw TypeError(caller, ": dtype must be float32, int64 or string, received ", out.dtype);
  }
  out.layout = parsed_spec(spec).layout;
  if (const auto* fixed = std::get_if<FixedLenFeature>(&spec)) {
    if (!fixed->shape.fully_defined()) {
      throw ValueError(caller, ": the shape must be fully defined, received ", fixed->shape);
    }
    out.shape = fixed->shape;
    out.count = fixed->shape.size();
    out.default_values = default_values_of(caller, *fixed);
  }
  return out;
}

// Finds features by name. Consecutive examples mostly list their features in the same order, so the
// feature found at the same position of the previous example is tried first.
class NameFinder {
 public:
  explicit NameFinder(const std::vector<ParsedFeature>& features) : features_(features) {}

  // Returns the index of the feature, or -1 if there is none. `entry` is its position in the
  // example.
  int64_t find(std::string_view name, size_t entry) {
    if (entry >= kMostGuesses) return search(name);
    if (entry >= guesses_.size()) guesses_.resize(entry + 1);
    Guess& guess = guesses_[entry];
    if (guess.known && guess.name == name) return guess.feature;
    guess = {.known = true, .name = name, .feature = search(name)};
    return guess.feature;
  }

 private:
  static constexpr size_t kMostGuesses = 1024;
  struct Guess {
    bool known = false;
    std::string_view name;
    int64_t feature = -1;
  };

  int64_t search(std::string_view name) const {
    const auto at = std::ranges::lower_bound(
        features_, name, {},
        [](const ParsedFeature& feature) -> std::string_view { return feature.name; });
    return at != features_.end() && at->name == name ? at - features_.begin() : -1;
  }

  const std::vector<ParsedFeature>& features_;
  std::vector<Guess> guesses_;  // names refer to the examples of the block
};

// The result of one feature for all examples of the batch.
struct Column {
  Tensor dense;
  void* elements = nullptr;      // elements of `dense`
  std::vector<ValueList> lists;  // the list of each example, unless the feature is dense
  Tensor row_splits;
  // The elements of row_splits; at first row_splits[i + 1] is the count of example i.
  int64_t* splits = nullptr;
};

template <class Fn>
void visit_listed(DType dtype, Fn&& fn) {
  if (dtype == DType::kString) return fn(std::string());
  if (dtype == DType::kFloat32) return fn(float{});
  fn(int64_t{});
}

class Batch {
 public:
  Batch(const std::vector<ParsedFeature>& features, std::span<const std::string> examples)
      : features_(features), examples_(examples), columns_(features.size()) {
    for (size_t f = 0; f < features.size(); ++f) start(features[f], columns_[f]);
  }

  Tensors parse() {
    const auto n = static_cast<int64_t>(examples_.size());
    parallel_for(n, kExamplesOfBlock, [this](int64_t begin, int64_t end) {
      NameFinder finder(features_);
      std::vector<ValueList> lists(features_.size());
      for (int64_t i = begin; i < end; ++i) read_example(i, finder, lists);
    });
    Tensors::Dict out;
    for (size_t f = 0; f < features_.size(); ++f) {
      out.emplace(features_[f].name, finished(features_[f], columns_[f]));
    }
    return out;
  }

 private:
  void start(const ParsedFeature& feature, Column& column) const {
    const auto n = static_cast<int64_t>(examples_.size());
    if (feature.layout == Layout::kDense) {
      column.dense = Tensor::uninitialized(Shape({n}) + feature.shape, feature.dtype);
      visit_listed(feature.dtype, [&]<class T>(const T&) {
        column.elements = column.dense.mutable_data<T>().data();
      });
      return;
    }
    column.lists.resize(examples_.size());
    column.row_splits = Tensor::uninitialized({n + 1}, DType::kInt64);
    column.splits = column.row_splits.mutable_data<int64_t>().data();
    column.splits[0] = 0;
  }

  template <class... Args>
  [[noreturn]] static void fail(int64_t example, const ParsedFeature& feature,
                                const Args&... what) {
    throw ValueError(kCaller, ": example ", example, ", feature '", feature.name, "': ", what...);
  }

  void read_example(int64_t i, NameFinder& finder, std::vector<ValueList>& lists) {
    std::ranges::fill(lists, ValueList());
    const ParsedFeature* broken = nullptr;
    size_t entry = 0;
    const bool whole =
        for_each_feature(examples_[i], [&](std::string_view name, std::string_view feature) {
          const int64_t f = finder.find(name, entry++);
          if (f >= 0 && !find_list(feature, lists[f])) broken = &features_[f];
        });
    if (broken != nullptr) fail(i, *broken, "the bytes are malformed");
    if (!whole) {
      throw ValueError(kCaller, ": example ", i,
                       ": the bytes are not a tf.Example; pass the bytes of SerializeToString() or "
                       "serialize_example()");
    }
    for (size_t f = 0; f < features_.size(); ++f) read_feature(i, features_[f], lists[f], f);
  }

  void read_feature(int64_t i, const ParsedFeature& feature, const ValueList& list, size_t f) {
    Column& column = columns_[f];
    const bool missing = list.kind == ListKind::kMissing;
    if (!missing && list.kind != feature.kind) {
      throw TypeError(kCaller, ": example ", i, ", feature '", feature.name, "': expected ",
                      feature.dtype, ", received ", dtype_of_list(list.kind));
    }
    const int64_t count = missing ? 0 : count_values(list);
    if (count < 0) fail(i, feature, "the bytes are malformed");
    if (feature.layout != Layout::kDense) {
      column.lists[i] = list;
      column.splits[i + 1] = count;
      return;
    }
    if (missing && !feature.default_values) {
      fail(i, feature, "is missing and has no default value");
    }
    if (!missing && count != feature.count) {
      fail(i, feature, "expected ", feature.count, " values for shape ", feature.shape,
           ", received ", count);
    }
    visit_listed(feature.dtype, [&]<class T>(const T&) {
      T* const out = static_cast<T*>(column.elements) + i * feature.count;
      if (missing) {
        std::ranges::copy(feature.default_values.data<T>(), out);
      } else if (!read_values(list, out)) {
        fail(i, feature, "the bytes are malformed");
      }
    });
  }

  TensorLike finished(const ParsedFeature& feature, Column& column) const {
    if (feature.layout == Layout::kDense) return std::move(column.dense);
    const auto n = static_cast<int64_t>(examples_.size());
    int64_t longest = 0;
    for (int64_t i = 0; i < n; ++i) {
      longest = std::max(longest, column.splits[i + 1]);
      column.splits[i + 1] += column.splits[i];
    }
    Tensor values = Tensor::uninitialized({column.splits[n]}, feature.dtype);
    visit_listed(feature.dtype, [&]<class T>(const T&) {
      T* const out = values.mutable_data<T>().data();
      parallel_for(n, kExamplesOfBlock, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          if (!read_values(column.lists[i], out + column.splits[i])) {
            fail(i, feature, "the bytes are malformed");
          }
        }
      });
    });
    if (feature.layout == Layout::kRagged) {
      return RaggedTensor{std::move(values), std::move(column.row_splits)};
    }
    return SparseTensor{indices_of(column), std::move(values), {n, longest}};
  }

  Tensor indices_of(const Column& column) const {
    const auto n = static_cast<int64_t>(examples_.size());
    Tensor out = Tensor::uninitialized({column.splits[n], 2}, DType::kInt64);
    int64_t* p = out.mutable_data<int64_t>().data();
    for (int64_t i = 0; i < n; ++i) {
      const int64_t count = column.splits[i + 1] - column.splits[i];
      for (int64_t k = 0; k < count; ++k) {
        *p++ = i;
        *p++ = k;
      }
    }
    return out;
  }

  const std::vector<ParsedFeature>& features_;
  const std::span<const std::string> examples_;
  std::vector<Column> columns_;
};

}  // namespace

const char* name_of(const FeatureSpec& spec) {
  constexpr const char* kNames[] = {"FixedLenFeature", "VarLenFeature", "RaggedFeature"};
  return kNames[spec.index()];
}

DType dtype_of(const FeatureSpec& spec) {
  return std::visit([](const auto& feature) { return feature.dtype; }, spec);
}

TensorSpec parsed_spec(const FeatureSpec& spec) {
  const DType dtype = dtype_of(spec);
  if (const auto* fixed = std::get_if<FixedLenFeature>(&spec)) {
    return {.shape = Shape({kUnknown}) + fixed->shape, .dtype = dtype};
  }
  const bool sparse = std::holds_alternative<VarLenFeature>(spec);
  return {.shape = {kUnknown, kUnknown},
          .dtype = dtype,
          .layout = sparse ? Layout::kSparse : Layout::kRagged};
}

struct ExampleParser::Plan {
  FeatureSpecs specs;
  std::vector<ParsedFeature> features;  // sorted by name
};

ExampleParser::ExampleParser(FeatureSpecs specs) {
  if (specs.empty()) throw ValueError(kCaller, ": no features; pass at least one spec");
  auto plan = std::make_shared<Plan>();
  for (const auto& [name, spec] : specs) plan->features.push_back(parsed_feature(name, spec));
  plan->specs = std::move(specs);
  plan_ = std::move(plan);
}

const FeatureSpecs& ExampleParser::specs() const { return plan_->specs; }

Tensors ExampleParser::operator()(const Tensors& serialized) const {
  const Tensor examples = serialized.tensor();
  if (examples.dtype() != DType::kString) {
    throw TypeError(kCaller, ": the serialized examples must be strings, received ",
                    examples.dtype());
  }
  if (examples.rank() != 1) {
    throw ValueError(kCaller, ": the serialized examples must have shape [batch], received ",
                     examples.shape());
  }
  return Batch(plan_->features, examples.data<std::string>()).parse();
}

Tensors parse_example(const Tensor& serialized, const FeatureSpecs& specs) {
  return ExampleParser(specs)(serialized);
}

}  // namespace keel::data
