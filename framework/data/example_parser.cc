#include <keel/framework/data/example_parser.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include <keel/framework/base/parallel.h>
#include <keel/framework/data/internal/example_wire.h>

namespace keel::data {
namespace {

constexpr const char* kCaller = "parse_example";
constexpr int64_t kExamplesOfBlock = 64;

// One feature as parsing needs it.
struct Wanted {
  std::string name;
  DType dtype = DType::kFloat32;
  ListKind kind = ListKind::kMissing;
  Layout layout = Layout::kDense;
  Shape shape = {};            // of a dense one
  int64_t count = 0;           // its values
  Tensor default_values = {};  // of that shape, or empty
};

Tensor default_values_of(const std::string& caller, const FixedLenFeature& spec) {
  const Tensor& given = spec.default_value;
  if (!given) return {};
  if (given.dtype() != spec.dtype) {
    throw TypeError(caller, ": needs a default value of its dtype ", spec.dtype, ", received ",
                    given.dtype());
  }
  if (given.shape() == spec.shape) return given;
  if (given.rank() != 0) {
    throw ValueError(caller, ": needs a default value that is a scalar or of shape ", spec.shape,
                     ", received ", given.shape());
  }
  return visit_any(spec.dtype,
                   [&]<class T>(const T&) { return Tensor::full<T>(spec.shape, given.item<T>()); });
}

Wanted wanted(const std::string& name, const FeatureSpec& spec) {
  const std::string caller = str(kCaller, ": feature '", name, "'");
  Wanted out{.name = name, .dtype = dtype_of(spec), .kind = list_kind_of(dtype_of(spec))};
  if (out.kind == ListKind::kMissing) {
    throw TypeError(caller, ": needs float32, int64 or string, received ", out.dtype);
  }
  out.layout = parsed_spec(spec).layout;
  if (const auto* fixed = std::get_if<FixedLenFeature>(&spec)) {
    if (!fixed->shape.fully_defined()) {
      throw ValueError(caller, ": needs a shape whose dimensions are all known, received ",
                       fixed->shape);
    }
    out.shape = fixed->shape;
    out.count = fixed->shape.size();
    out.default_values = default_values_of(caller, *fixed);
  }
  return out;
}

// Features of consecutive examples mostly come in the same order: what stood at a position last
// time is a good guess of what stands there now.
class NameFinder {
 public:
  explicit NameFinder(const std::vector<Wanted>& features) : features_(features) {}

  // Position among the features, -1 for none. `entry`: its place in the example.
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
        [](const Wanted& feature) -> std::string_view { return feature.name; });
    return at != features_.end() && at->name == name ? at - features_.begin() : -1;
  }

  const std::vector<Wanted>& features_;
  std::vector<Guess> guesses_;  // names lie in the examples of the block
};

// What one feature becomes, for all examples of the batch.
struct Column {
  Tensor dense;
  void* elements = nullptr;      // of `dense`
  std::vector<ValueList> lists;  // of each example, if it is not dense
  Tensor row_splits;
  int64_t* splits = nullptr;  // its elements: row_splits[i + 1] has the count of i at first
};

template <class Fn>
void visit_listed(DType dtype, Fn&& fn) {
  if (dtype == DType::kString) return fn(std::string());
  if (dtype == DType::kFloat32) return fn(float{});
  fn(int64_t{});
}

class Batch {
 public:
  Batch(const std::vector<Wanted>& features, std::span<const std::string> examples)
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
  void start(const Wanted& feature, Column& column) const {
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
  [[noreturn]] static void fail(int64_t example, const Wanted& feature, const Args&... what) {
    throw ValueError(kCaller, ": example ", example, ", feature '", feature.name, "': ", what...);
  }

  void read_example(int64_t i, NameFinder& finder, std::vector<ValueList>& lists) {
    std::ranges::fill(lists, ValueList());
    const Wanted* broken = nullptr;
    size_t entry = 0;
    const bool whole =
        for_each_feature(examples_[i], [&](std::string_view name, std::string_view feature) {
          const int64_t f = finder.find(name, entry++);
          if (f >= 0 && !find_list(feature, lists[f])) broken = &features_[f];
        });
    if (broken != nullptr) fail(i, *broken, "its bytes are malformed");
    if (!whole) throw ValueError(kCaller, ": example ", i, ": its bytes are no tf.Example");
    for (size_t f = 0; f < features_.size(); ++f) read_feature(i, features_[f], lists[f], f);
  }

  void read_feature(int64_t i, const Wanted& feature, const ValueList& list, size_t f) {
    Column& column = columns_[f];
    const bool missing = list.kind == ListKind::kMissing;
    if (!missing && list.kind != feature.kind) {
      throw TypeError(kCaller, ": example ", i, ", feature '", feature.name, "': expected ",
                      feature.dtype, ", received ", dtype_of_list(list.kind));
    }
    const int64_t count = missing ? 0 : count_values(list);
    if (count < 0) fail(i, feature, "its bytes are malformed");
    if (feature.layout != Layout::kDense) {
      column.lists[i] = list;
      column.splits[i + 1] = count;
      return;
    }
    if (missing && !feature.default_values) {
      fail(i, feature, "is missing, and has no default value");
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
        fail(i, feature, "its bytes are malformed");
      }
    });
  }

  TensorLike finished(const Wanted& feature, Column& column) const {
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
            fail(i, feature, "its bytes are malformed");
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

  const std::vector<Wanted>& features_;
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
  std::vector<Wanted> features;  // ascending by name
};

ExampleParser::ExampleParser(FeatureSpecs specs) {
  if (specs.empty()) throw ValueError(kCaller, ": needs a feature to parse, received none");
  auto plan = std::make_shared<Plan>();
  for (const auto& [name, spec] : specs) plan->features.push_back(wanted(name, spec));
  plan->specs = std::move(specs);
  plan_ = std::move(plan);
}

const FeatureSpecs& ExampleParser::specs() const { return plan_->specs; }

Tensors ExampleParser::operator()(const Tensors& serialized) const {
  const Tensor examples = serialized.tensor();
  if (examples.dtype() != DType::kString) {
    throw TypeError(kCaller, ": needs serialized examples, strings, received ", examples.dtype());
  }
  if (examples.rank() != 1) {
    throw ValueError(kCaller, ": needs serialized examples of shape [batch], received ",
                     examples.shape());
  }
  return Batch(plan_->features, examples.data<std::string>()).parse();
}

Tensors parse_example(const Tensor& serialized, const FeatureSpecs& specs) {
  return ExampleParser(specs)(serialized);
}

}  // namespace keel::data
