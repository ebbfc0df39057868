// The nodes of any Nest<T> as functions see them that are not templates, so that what does not
// depend on T is compiled once. nest.h uses it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <keel/framework/base/function_ref.h>

namespace keel {

// The kind of a node: a leaf holds a T, the others hold nests.
enum class NestKind {
  kLeaf,   // a T
  kList,   // nests by position
  kTuple,  // nests by position, of a fixed number
  kDict    // nests by key
};
// Returns the kind as messages print it: "a leaf", "a list", ...
std::string_view name_of(NestKind kind);

namespace nest_internal {
struct NodeType;
// A node of a Nest<T>, and the functions that read it.
struct NodeView {
  const void* node;
  const NodeType* type;
};
// The kind of a node, and the number of its children.
struct NodeShape {
  NestKind kind;
  size_t size;
};
// Called with each child of a node and its key, which is null in a list or tuple.
using VisitChild = FunctionRef<void(const std::string* key, const void* child)>;
struct NodeType {
  NodeShape (*shape)(const void* node);
  void (*for_each_child)(const void* node, VisitChild fn);
  const void* (*find)(const void* dict, const std::string& key);  // null if the key is missing
};
std::string child_path(const std::string& path, const std::string& key);
std::string structure_of(NodeView nest);
[[noreturn]] void throw_wrong_kind(NodeView nest, const char* expected);
[[noreturn]] void throw_missing_key(NodeView nest, const std::string& key);
// Returns the position, or throws ValueError if it is out of bounds for a list or tuple.
size_t checked_position(NodeView nest, int position);

// See the functions of nest_functions.h.
void for_each_leaf(NodeView nest, const std::string& path,
                   FunctionRef<void(const std::string& path, const void* leaf)> fn);
void for_each_leaf(NodeView nest, FunctionRef<void(const void* leaf)> fn);
std::vector<std::string> flatten_paths(NodeView nest);
size_t count_leaves(NodeView nest);
void assert_same_structure(NodeView expected, NodeView received, const std::string& path);
[[noreturn]] void throw_leaf_count(NodeView structure, size_t received);
}  // namespace nest_internal

}  // namespace keel
