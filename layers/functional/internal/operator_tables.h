// The tables of functions that operators of graphs may compute.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <keel/layers/functional/internal/operator_arguments.h>
#include <keel/layers/functional/internal/operator_functions.h>

namespace keel {

using OperatorTable = std::map<std::string, OperatorFunction>;

// Adds a function. `parameters` are names in the order of positional arguments, separated by
// spaces: first the arguments of the call, then those that Keras stores in the operator's config.
// A name that begins with "*" takes all positional arguments as a list, and "**" any other name.
void add_operator(OperatorTable& table, const char* name, const char* parameters,
                  std::function<Tensors(const OperatorArguments&)> compute);

// Add functions of one tensor, "x", and of two operands with these names.
using FunctionOfOne = std::pair<const char*, Tensor (*)(const Tensor&)>;
using FunctionOfTwo =
    std::pair<const char*, Tensor (*)(const keras_ops::Operand&, const keras_ops::Operand&)>;
void add_functions_of_one(OperatorTable& table, std::span<const FunctionOfOne> functions);
void add_functions_of_two(OperatorTable& table, std::span<const FunctionOfTwo> functions,
                          const char* first, const char* second);

// Add functions of arithmetic, comparison, reduction and linear algebra.
void add_math_operators(OperatorTable& table);
// Add functions that move, select or sort elements.
void add_array_operators(OperatorTable& table);
// Add functions of neural networks and images.
void add_nn_operators(OperatorTable& table);

// Returns a tensor argument, or nothing if it is null or missing.
std::optional<Tensor> optional_tensor(const OperatorArguments& arguments, const char* name);
// Returns a list of results.
Tensors list_of(const std::vector<Tensor>& results);

}  // namespace keel
