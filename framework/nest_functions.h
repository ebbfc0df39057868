// Functions of nests: leaves in flattening order, and comparison and reconstruction of structures.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <keel/framework/nest.h>

namespace keel {

// Calls fn(path, leaf) for every leaf in flattening order.
template <class T, class Fn>
void for_each_leaf(const Nest<T>& nest, Fn&& fn, const std::string& path = "") {
  nest_internal::for_each_leaf(nest.view(), path, [&](const std::string& at, const void* leaf) {
    fn(at, static_cast<const Nest<T>*>(leaf)->leaf());
  });
}

// Returns the leaves in flattening order.
template <class T>
std::vector<T> flatten(const Nest<T>& nest) {
  std::vector<T> out;
  nest_internal::for_each_leaf(nest.view(), [&](const void* leaf) {
    out.push_back(static_cast<const Nest<T>*>(leaf)->leaf());
  });
  return out;
}

// Returns the paths of the leaves in flattening order.
template <class T>
std::vector<std::string> flatten_paths(const Nest<T>& nest) {
  return nest_internal::flatten_paths(nest.view());
}

namespace nest_internal {
// Depends on the type of the new leaves only, so that the uses of map_structure() share its code.
template <class U>
Nest<U> map_leaves(NodeView nest, FunctionRef<U(const void* leaf)> fn) {
  const auto [kind, size] = nest.type->shape(nest.node);
  if (kind == NestKind::kLeaf) return Nest<U>(fn(nest.node));
  typename Nest<U>::Dict entries;
  typename Nest<U>::Items items;
  if (kind != NestKind::kDict) items.reserve(size);
  nest.type->for_each_child(nest.node, [&](const std::string* key, const void* child) {
    Nest<U> mapped = map_leaves<U>({child, nest.type}, fn);
    if (key != nullptr) {
      entries.emplace_hint(entries.end(), *key, std::move(mapped));
    } else {
      items.push_back(std::move(mapped));
    }
  });
  if (kind == NestKind::kDict) return Nest<U>(std::move(entries));
  return kind == NestKind::kList ? Nest<U>::list(std::move(items))
                                 : Nest<U>::tuple(std::move(items));
}
}  // namespace nest_internal

// Returns the same structure with every leaf replaced by fn(leaf). Calls `fn` in flattening order.
template <class T, class Fn>
auto map_structure(const Nest<T>& nest, Fn&& fn)
    -> Nest<std::remove_cvref_t<decltype(fn(nest.leaf()))>> {
  using U = std::remove_cvref_t<decltype(fn(nest.leaf()))>;
  return nest_internal::map_leaves<U>(nest.view(), [&](const void* leaf) -> U {
    return fn(static_cast<const Nest<T>*>(leaf)->leaf());
  });
}

// Builds a nest of the given structure from its leaves in flattening order; the inverse of
// flatten(). Throws ValueError if the number of leaves differs.
template <class S, class T>
Nest<T> pack_sequence_as(const Nest<S>& structure, const std::vector<T>& flat) {
  if (nest_internal::count_leaves(structure.view()) != flat.size()) {
    nest_internal::throw_leaf_count(structure.view(), flat.size());
  }
  size_t i = 0;
  return map_structure(structure, [&](const S&) -> T { return flat[i++]; });
}

// Throws unless both nests have the same structure: TypeError if nodes of different kinds (leaf,
// list, tuple, dict) are at the same path, ValueError if lengths or keys differ. The message
// contains the path of the first difference.
template <class S, class T>
void assert_same_structure(const Nest<S>& expected, const Nest<T>& received,
                           const std::string& path = "") {
  nest_internal::assert_same_structure(expected.view(), received.view(), path);
}

}  // namespace keel
