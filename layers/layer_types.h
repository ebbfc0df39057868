// Types that layers use:
//   LayerHandle         the shared, never null reference through which users hold and call a layer
//   WeightOptions       the arguments of Layer::add_weight()
//   StateEntry          a tensor of a layer's state, as model files and checkpoints access it
//   SeedGenerator       random numbers that differ at each call (keras.random.SeedGenerator)
//   SublayerAttributes, WeightAttributes, SharedWeights  sublayers and weights in Keras's files
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/variable.h>
#include <keel/framework/base/handle.h>
#include <keel/framework/initializers.h>
#include <keel/framework/random.h>
#include <keel/layers/regularizers.h>

namespace keel {

class Layer;

// A handle to a layer of class T. Copies share the layer.
template <class T>
class LayerHandle : public Handle<T> {
 public:
  using Handle<T>::Handle;
  // Converts a handle of a derived class.
  template <std::derived_from<T> U>
  LayerHandle(LayerHandle<U> other) : Handle<T>(std::move(other)) {}  // NOLINT: implicit upcast

  // Calls the layer; see Layer::operator().
  template <class U = T>
  Tensor operator()(const Tensor& x, const typename U::CallOptions& options = {}) const {
    return (**this)(x, options);
  }
  template <class U = T>
  Tensors operator()(const Tensors& x, const typename U::CallOptions& options = {}) const {
    return (**this)(x, options);
  }
};

// The arguments of Layer::add_weight().
struct WeightOptions {
  std::string name;                            // last part of its path, such as "kernel"
  Shape shape = {};                            // must be fully defined
  Initializer initializer = "glorot_uniform";  // creates the initial value
  Regularizer regularizer = {};                // part of losses() while the weight is trainable
  Constraint constraint = {};                  // optimizers apply it after each step
  bool trainable = true;                       // false: optimizers do not update it
  DType dtype = DType::kFloat32;               // usually the layer's dtype()
  // Selects whether each replica has its own copy, and how copies are combined; see variable.h.
  VariableSynchronization synchronization = VariableSynchronization::kShared;
  VariableAggregation aggregation = VariableAggregation::kNone;  // see `synchronization`
};

// One tensor of a layer's state, for model files and checkpoints. Its functions read and write the
// tensor wherever it is stored: in a variable, or in the embedding engine of a strategy.
struct StateEntry {
  // Model files hold entries of kind kWeight; checkpoints hold all entries.
  enum class Kind { kWeight, kSlot, kRandomState };
  std::string name;             // path inside the layer: "kernel", "users", "users/accumulator"
  TensorSpec spec = {};         // shape and dtype of the value
  Kind kind = Kind::kWeight;    // what the value is
  bool trainable = true;        // false for weights that optimizers do not update
  std::function<Tensor()> get;  // returns a copy of the value
  std::function<void(const Tensor&)> set;  // throws ValueError for another shape or dtype
  uint64_t variable_id = 0;                // 0 if the value is not stored in a variable
  // Throws ValueError for values that set() would reject, so that a file can be rejected before any
  // entry is set. An empty function means that set() accepts all values.
  std::function<void(const Tensor&)> check = {};
  // True for the parts of a table with dynamic ids: the value may have another number of rows than
  // `spec`. set() stores the part, and the last of the table's entries makes the stored parts the
  // new table.
  bool any_rows = false;

  // Access by rows, for tables that one process may not hold whole. This process stores the rows
  // [first, end) of the table; `read` and `write` transfer float32 rows [begin, end) in that range.
  // If `get` is set, it returns rows of any dtype and replaces both.
  struct Rows {
    int64_t first = 0;  // first row in this process
    int64_t end = 0;    // row after the last one in this process
    std::function<void(int64_t begin, int64_t end, float* out)> read;            // copies to `out`
    std::function<void(int64_t begin, int64_t end, const float* values)> write;  // sets the rows
    std::function<Tensor(int64_t begin, int64_t end)> get = {};                  // see above
  };
  std::optional<Rows> rows = {};  // unset for values that each process holds whole

  // A value in a file, whose rows are read when they are needed.
  struct Saved {
    TensorSpec spec = {};    // of the whole value
    std::string place = {};  // the file and the value, for errors
    std::function<Tensor(int64_t begin, int64_t end)> read = {};  // returns rows [begin, end)
  };
  // Restores the parts of a table with dynamic ids, in place of set(), so that the table and the
  // saved one need not be in memory at once. prepare() takes every part; that of the last one
  // checks all of them and throws before anything changes. Then replace() and finish() of the last
  // part make them the table; those of the others are unset. finish() is collective.
  struct Restore {
    std::function<void(const Saved& value)> prepare;  // see above
    std::function<void()> replace = {};               // see above
    std::function<void()> finish = {};                // see above
  };
  std::optional<Restore> restore = {};  // unset for all other values
};

// Additional base class of layers whose sublayers Keras's weights files name by the attribute that
// holds them, for example "lstm/cell/vars/0".
class SublayerAttributes {
 public:
  virtual ~SublayerAttributes() = default;
  // Returns one name for each of Layer::sublayers(), in the same order: {"forward_layer",
  // "backward_layer"}. The name is empty for a sublayer without weights.
  virtual std::vector<std::string> sublayer_attributes() const = 0;
};

// Additional base class of layers that own weights which Keras's layer keeps in sublayers, for
// example "feature_cross/dense/vars/0".
class WeightAttributes {
 public:
  virtual ~WeightAttributes() = default;
  // Returns the Keras sublayer of each weight among state_entries(), in the same order:
  // {"down_proj_dense", "dense", "dense"}.
  virtual std::vector<std::string> weight_attributes() const = 0;
};

// Additional base class of layers that hold weights of a sublayer under attributes of their own.
// Keras's weights files store such weights in the groups of both layers.
class SharedWeights {
 public:
  virtual ~SharedWeights() = default;
  // Returns these weights, in the order in which they precede the layer's own.
  virtual std::vector<Variable> shared_weights() const = 0;
};

// The random numbers of one call on one replica: the numbers of `stream` from position `first` on.
// `first` is a multiple of four, so positions in stream.bits() can be used as well: the words of
// this call start at first / 4.
struct RandomNumbers {
  RandomStream stream;  // the generator
  uint64_t first = 0;   // position of the first number
};

// Generates random numbers that are a function of the seed, the number of earlier calls, the
// replica and their position. They do not depend on the number of threads. The number of calls is a
// variable, so a restored checkpoint continues the sequence. A layer holds a generator and passes
// its state to add_state() when it is built:
//   void build_weights(const TensorSpec&) override { add_state(random_.make_state()); }
class SeedGenerator {
 public:
  // Uses `seed`, or the next stream of set_random_seed() if it is unset.
  explicit SeedGenerator(std::optional<int64_t> seed) : stream_(next_random_stream(seed)) {}

  // Creates the variable `seed_generator_state` (int64, shape {1}). Call it once, before next().
  Variable make_state();
  // Returns the numbers of the next call and increments the number of calls. Do not use it in
  // symbolic calls, which consume no random numbers.
  RandomNumbers next() const;

 private:
  const RandomStream stream_;
  Variable calls_;
};

}  // namespace keel

extern template std::vector<keel::StateEntry>::~vector();
extern template std::vector<keel::StateEntry>::vector(const std::vector<keel::StateEntry>& other);
