#include <array>
#include <utility>

#include <keel/framework/nest_functions.h>

namespace keel {

std::string_view name_of(NestKind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"a leaf", "a list", "a tuple", "a dict"};
  return kNames.at(static_cast<size_t>(kind));
}

namespace nest_internal {
namespace {

NodeShape shape_of(NodeView nest) { return nest.type->shape(nest.node); }

// Calls fn(path of the child, child) for each child.
template <class Fn>
void for_each_child(NodeView nest, const std::string& path, Fn&& fn) {
  size_t position = 0;
  nest.type->for_each_child(nest.node, [&](const std::string* key, const void* child) {
    const NodeView view = {child, nest.type};
    if (key != nullptr) {
      fn(child_path(path, *key), view);
    } else {
      fn(child_path(path, std::to_string(position++)), view);
    }
  });
}

}  // namespace

std::string child_path(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "/" + key;
}

std::string structure_of(NodeView nest) {
  const NestKind kind = shape_of(nest).kind;
  if (kind == NestKind::kLeaf) return "*";
  std::string out;
  nest.type->for_each_child(nest.node, [&](const std::string* key, const void* child) {
    if (!out.empty()) out += ", ";
    if (key != nullptr) out += *key + ": ";
    out += structure_of({child, nest.type});
  });
  if (kind == NestKind::kDict) return "{" + out + "}";
  return kind == NestKind::kList ? "[" + out + "]" : "(" + out + ")";
}

void throw_wrong_kind(NodeView nest, const char* expected) {
  throw TypeError("Nest: expected ", expected, ", received ", structure_of(nest));
}

void throw_missing_key(NodeView nest, const std::string& key) {
  throw ValueError("Nest: no key '", key, "' in ", structure_of(nest), "; pass a key of the dict");
}

size_t checked_position(NodeView nest, int position) {
  if (position >= 0 && std::cmp_less(position, nest.type->shape(nest.node).size)) {
    return static_cast<size_t>(position);
  }
  throw ValueError("Nest: position ", position, " is out of bounds for ", structure_of(nest),
                   "; pass the position of an item");
}

void throw_leaf_count(NodeView structure, size_t received) {
  throw ValueError("pack_sequence_as: received ", received, " leaves for structure ",
                   structure_of(structure), "; pass one for each leaf");
}

void for_each_leaf(NodeView nest, const std::string& path,
                   FunctionRef<void(const std::string& path, const void* leaf)> fn) {
  if (shape_of(nest).kind == NestKind::kLeaf) return fn(path, nest.node);
  for_each_child(nest, path, [&](const std::string& path_of_child, NodeView child) {
    for_each_leaf(child, path_of_child, fn);
  });
}

void for_each_leaf(NodeView nest, FunctionRef<void(const void* leaf)> fn) {
  if (shape_of(nest).kind == NestKind::kLeaf) return fn(nest.node);
  nest.type->for_each_child(nest.node, [&](const std::string*, const void* child) {
    for_each_leaf({child, nest.type}, fn);
  });
}

std::vector<std::string> flatten_paths(NodeView nest) {
  std::vector<std::string> out;
  for_each_leaf(nest, "", [&](const std::string& path, const void*) { out.push_back(path); });
  return out;
}

size_t count_leaves(NodeView nest) {
  size_t count = 0;
  for_each_leaf(nest, [&](const void*) { ++count; });
  return count;
}

void assert_same_structure(NodeView expected, NodeView received, const std::string& path) {
  const auto [kind, size] = shape_of(expected);
  const auto [received_kind, received_size] = shape_of(received);
  if (kind != received_kind) {
    throw TypeError("assert_same_structure: the structure at '", path, "' must be ", name_of(kind),
                    ", received ", name_of(received_kind));
  }
  if (kind == NestKind::kLeaf) return;
  const auto differ = [&] {
    throw ValueError("assert_same_structure: the structure at '", path, "' must be ",
                     structure_of(expected), ", received ", structure_of(received));
  };
  if (size != received_size) differ();
  std::vector<const void*> children;  // of a received list or tuple
  if (kind != NestKind::kDict) {
    children.reserve(size);
    received.type->for_each_child(
        received.node, [&](const std::string*, const void* child) { children.push_back(child); });
  }
  size_t position = 0;
  expected.type->for_each_child(expected.node, [&](const std::string* key, const void* child) {
    const NodeView view = {child, expected.type};
    if (key != nullptr) {
      const void* const other = received.type->find(received.node, *key);
      if (other == nullptr) differ();
      assert_same_structure(view, {other, received.type}, child_path(path, *key));
    } else {
      assert_same_structure(view, {children[position], received.type},
                            child_path(path, std::to_string(position)));
      ++position;
    }
  });
}

}  // namespace nest_internal
}  // namespace keel
