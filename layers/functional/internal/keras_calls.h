// The call signatures of Keras layers. Keras passes several arguments to call(); layers of this
// library take one structure of tensors.
#pragma once

#include <string>
#include <vector>

#include <keel/framework/tensor_like.h>

namespace keel {

// A parameter of call() in Keras.
struct CallParameter {
  enum class Kind {
    kInput,  // a tensor, or a structure of them
    kMask,   // a mask of an input
    kFlag,   // a bool
    kTraining,
  };
  std::string name;
  Kind kind = Kind::kInput;
  std::string masked = {};  // for a mask: the input that it masks
};

// The parameters of call() in Keras, and how this library combines the inputs.
struct CallSignature {
  // The structure that call() of this library takes for Keras's inputs.
  enum class Form {
    kOpen,      // the first input, or a list of all; the class may take any number
    kOne,       // the only input
    kSpread,    // the only input given, or a flat list of the tensors of all inputs
    kSeparate,  // like kSpread, or a dict by name with the flags if more is given
    kList,      // the only input, often a list, or a dict of it and the flags
  };
  std::vector<CallParameter> parameters;  // in positional order
  Form form = Form::kOpen;
};

// Returns the signature of a class, from its ClassTraits::call. Classes that are not part of Keras,
// and the many that take one input and no mask there, have the parameters "inputs", "training" and
// "mask".
CallSignature call_signature(const std::string& class_name);

// Returns true if call() of the class has the parameter `training` in Keras. Returns true for
// classes that are not part of Keras.
bool takes_training(const std::string& class_name);

// A call in Keras's form: the inputs, in the order of the parameters, and the flags that are set.
struct KerasCall {
  struct Input {
    std::string name;
    Tensors value;
    bool by_keyword = false;
  };
  std::vector<Input> inputs;
  std::vector<std::string> flags = {};
};
// Converts the inputs of a call in this library to Keras's form.
KerasCall keras_call(const std::string& class_name, const Tensors& inputs);

}  // namespace keel
