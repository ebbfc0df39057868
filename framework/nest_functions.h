// Functions of nests: leaves in flattening order, and comparison and reconstruction of structures.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <keel/framework/nest.h>

namespace keel {

namespace nest_internal {
std::string child_path(const std::string& path, const std::string& key);
[[noreturn]] void throw_kind_mismatch(const std::string& path, NestKind expected,
                                      NestKind received);
[[noreturn]] void throw_structure_mismatch(const std::string& path, const std::string& expected,
                                           const std::string& received);
}  // namespace nest_internal

// Calls fn(path, leaf) for every leaf in flattening order.
template <class T, class Fn>
void for_each_leaf(const Nest<T>& nest, Fn&& fn, const std::string& path = "") {
  using nest_internal::child_path;
  if (nest.is_leaf()) {
    fn(path, nest.leaf());
  } else if (nest.is_dict()) {
    for (const auto& [key, child] : nest.entries()) for_each_leaf(child, fn, child_path(path, key));
  } else {
    for (size_t i = 0; i < nest.items().size(); ++i) {
      for_each_leaf(nest.items()[i], fn, child_path(path, std::to_string(i)));
    }
  }
}

// Returns the leaves in flattening order.
template <class T>
std::vector<T> flatten(const Nest<T>& nest) {
  std::vector<T> out;
  for_each_leaf(nest, [&](const std::string&, const T& leaf) { out.push_back(leaf); });
  return out;
}

// Returns the paths of the leaves in flattening order.
template <class T>
std::vector<std::string> flatten_paths(const Nest<T>& nest) {
  std::vector<std::string> out;
  for_each_leaf(nest, [&](const std::string& path, const T&) { out.push_back(path); });
  return out;
}

// Returns the same structure with every leaf replaced by fn(leaf). Calls `fn` in flattening order.
template <class T, class Fn>
auto map_structure(const Nest<T>& nest, Fn&& fn)
    -> Nest<std::remove_cvref_t<decltype(fn(nest.leaf()))>> {
  using U = std::remove_cvref_t<decltype(fn(nest.leaf()))>;
  if (nest.is_leaf()) return Nest<U>(fn(nest.leaf()));
  if (nest.is_dict()) {
    typename Nest<U>::Dict out;
    for (const auto& [key, child] : nest.entries()) out.emplace(key, map_structure(child, fn));
    return Nest<U>(std::move(out));
  }
  typename Nest<U>::Items out;
  for (const auto& child : nest.items()) out.push_back(map_structure(child, fn));
  return nest.kind() == NestKind::kList ? Nest<U>::list(std::move(out))
                                        : Nest<U>::tuple(std::move(out));
}

// Builds a nest of the given structure from its leaves in flattening order; the inverse of
// flatten(). Throws ValueError if the number of leaves differs.
template <class S, class T>
Nest<T> pack_sequence_as(const Nest<S>& structure, const std::vector<T>& flat) {
  if (const size_t leaves = flatten_paths(structure).size(); leaves != flat.size()) {
    throw ValueError("pack_sequence_as: received ", flat.size(), " leaves for structure ",
                     structure.structure(), "; pass one for each leaf");
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
  using nest_internal::child_path;
  if (expected.kind() != received.kind()) {
    nest_internal::throw_kind_mismatch(path, expected.kind(), received.kind());
  }
  if (expected.is_leaf()) return;
  const auto differ = [&] {
    nest_internal::throw_structure_mismatch(path, expected.structure(), received.structure());
  };
  if (expected.is_dict()) {
    if (expected.entries().size() != received.entries().size()) differ();
    for (const auto& [key, child] : expected.entries()) {
      const auto it = received.entries().find(key);
      if (it == received.entries().end()) differ();
      assert_same_structure(child, it->second, child_path(path, key));
    }
    return;
  }
  if (expected.items().size() != received.items().size()) differ();
  for (size_t i = 0; i < expected.items().size(); ++i) {
    assert_same_structure(expected.items()[i], received.items()[i],
                          child_path(path, std::to_string(i)));
  }
}

}  // namespace keel
