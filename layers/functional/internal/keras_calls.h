// How the layers of Keras are called: there a call has several arguments, here one structure of
// tensors.
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
  std::string masked = {};  // of a mask: the input that it is for
};

struct CallSignature {
  // What call() here takes for the inputs there.
  enum class Form {
    kOpen,      // the first one, or a list of all; the class is not known to take just one
    kOne,       // the only one
    kSpread,    // the only one given, or a list of what all of them hold
    kSeparate,  // as kSpread, or a dict by name of them and the flags if anything more is given
    kList,      // a list, or a dict of it and the flags
  };
  std::vector<CallParameter> parameters;  // in order
  Form form = Form::kOpen;
};

// For classes that are not Keras's, and for the many that take one input there too: "inputs",
// "training" and "mask".
const CallSignature& call_signature(const std::string& class_name);

// Whether call() of the class has the parameter `training` in Keras. Classes that are not Keras's
// do.
bool takes_training(const std::string& class_name);

// A call here in the terms of Keras: the inputs, in the order of the parameters, and the flags that
// are set.
struct KerasCall {
  struct Input {
    std::string name;
    Tensors value;
    bool by_keyword = false;
  };
  std::vector<Input> inputs;
  std::vector<std::string> flags = {};
};
KerasCall keras_call(const std::string& class_name, const Tensors& inputs);

}  // namespace keel
