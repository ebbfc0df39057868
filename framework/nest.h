// Nest<T>: a T, or a list, tuple or dict of nests (tf.nest).
//
// The leaves have an order, in which features, weights, activations and gradients are matched:
// depth first, sequences by position, dicts by ascending key. The path of a leaf consists of its
// keys and positions, joined by '/': "group/watched", "0".
#pragma once

#include <concepts>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <keel/framework/base/errors.h>

namespace keel {

// The kind of a node: a leaf holds a T, the others hold nests.
enum class NestKind { kLeaf, kList, kTuple, kDict };
// Returns the kind as messages print it: "a leaf", "a list", ...
std::string_view name_of(NestKind kind);

// A tree of T. Nodes of different kinds may be mixed at any depth.
template <class T>
class Nest {
 public:
  using Items = std::vector<Nest>;
  using Dict = std::map<std::string, Nest>;

  Nest() : node_(List{}) {}  // the empty list
  template <std::convertible_to<T> U>
    requires(!std::same_as<std::remove_cvref_t<U>, Nest>)
  Nest(U&& leaf)  // NOLINT: implicit
      : node_(std::in_place_type<T>, std::forward<U>(leaf)) {}
  Nest(Dict entries) : node_(std::move(entries)) {}  // NOLINT: implicit
  Nest(std::initializer_list<std::pair<const std::string, Nest>> entries) : node_(Dict(entries)) {}

  // Make a list, a tuple or a dict from its children.
  static Nest list(Items items) { return Nest(Node(List{std::move(items)})); }
  static Nest tuple(Items items) { return Nest(Node(Tuple{std::move(items)})); }
  static Nest dict(Dict entries) { return Nest(std::move(entries)); }

  // Return the kind of this node, or true if it has that kind.
  NestKind kind() const { return static_cast<NestKind>(node_.index()); }
  bool is_leaf() const { return kind() == NestKind::kLeaf; }
  bool is_dict() const { return kind() == NestKind::kDict; }
  bool is_sequence() const { return kind() == NestKind::kList || kind() == NestKind::kTuple; }

  // The accessors below throw TypeError if the node is of another kind. Called on a temporary
  // (`model(x).tensor()`), all except at() return a copy, never a dangling reference.

  // Returns the value of a leaf.
  const T& leaf() const& { return as<T>("a leaf"); }
  T& leaf() & { return const_cast<T&>(std::as_const(*this).leaf()); }
  T leaf() && { return as<T>("a leaf"); }
  // For a Nest<TensorLike>: returns the dense tensor of a leaf.
  auto tensor() const
    requires requires(const T& t) { t.tensor(); }
  {
    return leaf().tensor();
  }

  // Returns the children of a list or tuple.
  const Items& items() const& {
    if (const auto* list = std::get_if<List>(&node_)) return list->items;
    return as<Tuple>("a list or tuple").items;
  }
  Items items() && { return std::as_const(*this).items(); }
  // Returns the children of a dict.
  const Dict& entries() const& { return as<Dict>("a dict"); }
  Dict entries() && { return as<Dict>("a dict"); }

  // Returns the child of a dict under `key`. Throws ValueError if the key is missing.
  const Nest& at(const std::string& key) const& {
    const auto it = entries().find(key);
    if (it == entries().end()) throw ValueError("Nest: no key '", key, "' in ", structure());
    return it->second;
  }
  // Returns at(key), or the child of a list or tuple at `position`, which throws std::out_of_range
  // if it is out of bounds.
  const Nest& operator[](const std::string& key) const& { return at(key); }
  Nest operator[](const std::string& key) && { return at(key); }
  const Nest& operator[](const char* key) const& { return at(key); }
  Nest operator[](const char* key) && { return at(key); }
  const Nest& operator[](int position) const& { return items().at(position); }
  Nest operator[](int position) && { return items().at(position); }

  // Returns the structure as text, with '*' for leaves: "{item: *, user: [*, *]}".
  std::string structure() const {
    if (is_leaf()) return "*";
    std::string out;
    if (is_dict()) {
      for (const auto& [key, child] : entries()) {
        out += (out.empty() ? "" : ", ") + key + ": " + child.structure();
      }
      return "{" + out + "}";
    }
    for (const Nest& child : items()) out += (out.empty() ? "" : ", ") + child.structure();
    return kind() == NestKind::kList ? "[" + out + "]" : "(" + out + ")";
  }

  // Makes a list if this node is a list, otherwise a tuple. For code that rebuilds structures.
  Nest same_kind(Items items) const {
    return kind() == NestKind::kList ? list(std::move(items)) : tuple(std::move(items));
  }

 private:
  struct List {
    Items items;
  };
  struct Tuple {
    Items items;
  };
  using Node = std::variant<T, List, Tuple, Dict>;  // in the order of NestKind

  explicit Nest(Node node) : node_(std::move(node)) {}
  template <class A>
  const A& as(const char* what) const {
    if (const A* p = std::get_if<A>(&node_)) return *p;
    throw TypeError("Nest: expected ", what, ", received ", structure());
  }

  Node node_;
};

namespace nest_internal {
std::string child_path(const std::string& path, const std::string& key);
[[noreturn]] void throw_other_kind(const std::string& path, NestKind expected, NestKind received);
[[noreturn]] void throw_other_children(const std::string& path, const std::string& expected,
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
                     structure.structure());
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
    nest_internal::throw_other_kind(path, expected.kind(), received.kind());
  }
  if (expected.is_leaf()) return;
  const auto differ = [&] {
    nest_internal::throw_other_children(path, expected.structure(), received.structure());
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
