// Nest<T>: a T, or a list, tuple or dict of nests (tf.nest).
//
// The leaves have an order, in which features, weights, activations and gradients are matched:
// depth first, sequences by position, dicts by ascending key. The path of a leaf consists of its
// keys and positions, joined by '/': "group/watched", "0". nest_functions.h has the functions of
// leaves and structures.
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
enum class NestKind {
  kLeaf,   // a T
  kList,   // nests by position
  kTuple,  // nests by position, of a fixed number
  kDict    // nests by key
};
// Returns the kind as messages print it: "a leaf", "a list", ...
std::string_view name_of(NestKind kind);

// A tree of T. Nodes of different kinds may be mixed at any depth.
template <class T>
class Nest {
 public:
  // The children of a list or tuple.
  using Items = std::vector<Nest>;
  // The children of a dict.
  using Dict = std::map<std::string, Nest>;

  Nest() : node_(List{}) {}  // the empty list
  // Makes a leaf.
  template <std::convertible_to<T> U>
    requires(!std::same_as<std::remove_cvref_t<U>, Nest>)
  Nest(U&& leaf)  // NOLINT: implicit
      : node_(std::in_place_type<T>, std::forward<U>(leaf)) {}
  // Make a dict.
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
    if (it == entries().end()) {
      throw ValueError("Nest: no key '", key, "' in ", structure(), "; pass a key of the dict");
    }
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

}  // namespace keel
