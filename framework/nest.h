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
#include <keel/framework/nest_node.h>

namespace keel {

// A tree of T. Nodes of different kinds may be mixed at any depth.
template <class T>
class Nest {
 public:
  // The children of a list or tuple.
  using Items = std::vector<Nest>;
  // The children of a dict.
  using Dict = std::map<std::string, Nest>;

  Nest();  // the empty list
  // Makes a leaf.
  template <class U>
    requires(!std::same_as<std::remove_cvref_t<U>, Nest> && std::convertible_to<U, T>)
  Nest(U&& leaf)  // NOLINT: implicit
      : node_(std::in_place_type<T>, std::forward<U>(leaf)) {}
  // Make a dict.
  Nest(Dict entries);  // NOLINT: implicit
  Nest(std::initializer_list<std::pair<const std::string, Nest>> entries);

  // Defined below and not inline, so that `extern template` keeps them out of other sources.
  ~Nest();
  Nest(const Nest& other);
  Nest(Nest&& other) noexcept(std::is_nothrow_move_constructible_v<T>);
  Nest& operator=(const Nest& other);
  Nest& operator=(Nest&& other) noexcept(std::is_nothrow_move_constructible_v<T> &&
                                         std::is_nothrow_move_assignable_v<T>);

  // Make a list, a tuple or a dict from its children.
  static Nest list(Items items);
  static Nest tuple(Items items);
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
  Dict entries() &&;

  // Returns the child of a dict under `key`. Throws ValueError if the key is missing.
  const Nest& at(const std::string& key) const&;
  // Returns at(key), or an item of a list or tuple. Throws ValueError for a position out of bounds.
  const Nest& operator[](const std::string& key) const& { return at(key); }
  Nest operator[](const std::string& key) && { return at(key); }
  const Nest& operator[](const char* key) const& { return at(key); }
  Nest operator[](const char* key) && { return at(key); }
  const Nest& operator[](int position) const& {
    return items()[nest_internal::checked_position(view(), position)];
  }
  Nest operator[](int position) && { return std::as_const(*this)[position]; }

  // Returns the structure as text, with '*' for leaves: "{item: *, user: [*, *]}".
  std::string structure() const { return nest_internal::structure_of(view()); }

  // Makes a list if this node is a list, otherwise a tuple. For code that rebuilds structures.
  Nest same_kind(Items items) const {
    return kind() == NestKind::kList ? list(std::move(items)) : tuple(std::move(items));
  }

  // For nest_functions.h: the node as functions that are not templates read it.
  nest_internal::NodeView view() const { return {this, &kType}; }

 private:
  struct List {
    Items items;
  };
  struct Tuple {
    Items items;
  };
  using Node = std::variant<T, List, Tuple, Dict>;  // in the order of NestKind

  static const nest_internal::NodeType kType;

  template <class A>
  const A& as(const char* what) const {
    if (const A* p = std::get_if<A>(&node_)) return *p;
    nest_internal::throw_wrong_kind(view(), what);
  }
  static nest_internal::NodeShape shape_of(const void* node);
  static void for_each_child_of(const void* node, nest_internal::VisitChild fn);
  static const void* find_in(const void* dict, const std::string& key);

  Node node_;
};

template <class T>
Nest<T>::Nest() : node_(List{}) {}
template <class T>
Nest<T>::Nest(Dict entries) : node_(std::move(entries)) {}
template <class T>
Nest<T>::Nest(std::initializer_list<std::pair<const std::string, Nest>> entries)
    : node_(Dict(entries)) {}

template <class T>
Nest<T>::~Nest() = default;
template <class T>
Nest<T>::Nest(const Nest& other) = default;
template <class T>
Nest<T>::Nest(Nest&& other) noexcept(std::is_nothrow_move_constructible_v<T>) = default;
template <class T>
Nest<T>& Nest<T>::operator=(const Nest& other) = default;
template <class T>
Nest<T>& Nest<T>::operator=(Nest&& other) noexcept(std::is_nothrow_move_constructible_v<T> &&
                                                   std::is_nothrow_move_assignable_v<T>) = default;

template <class T>
Nest<T> Nest<T>::list(Items items) {
  Nest out;
  std::get<List>(out.node_).items = std::move(items);
  return out;
}
template <class T>
Nest<T> Nest<T>::tuple(Items items) {
  Nest out;
  out.node_.template emplace<Tuple>(std::move(items));
  return out;
}

template <class T>
typename Nest<T>::Dict Nest<T>::entries() && {
  return as<Dict>("a dict");
}
template <class T>
const Nest<T>& Nest<T>::at(const std::string& key) const& {
  const auto it = entries().find(key);
  if (it == entries().end()) nest_internal::throw_missing_key(view(), key);
  return it->second;
}

template <class T>
const nest_internal::NodeType Nest<T>::kType = {&Nest::shape_of, &Nest::for_each_child_of,
                                                &Nest::find_in};
template <class T>
nest_internal::NodeShape Nest<T>::shape_of(const void* node) {
  const auto& nest = *static_cast<const Nest*>(node);
  if (nest.is_leaf()) return {NestKind::kLeaf, 0};
  return {nest.kind(), nest.is_dict() ? nest.entries().size() : nest.items().size()};
}
template <class T>
void Nest<T>::for_each_child_of(const void* node, nest_internal::VisitChild fn) {
  const auto& nest = *static_cast<const Nest*>(node);
  if (nest.is_dict()) {
    for (const auto& [key, child] : nest.entries()) fn(&key, &child);
  } else if (!nest.is_leaf()) {
    for (const Nest& child : nest.items()) fn(nullptr, &child);
  }
}
template <class T>
const void* Nest<T>::find_in(const void* dict, const std::string& key) {
  const Dict& entries = static_cast<const Nest*>(dict)->entries();
  const auto it = entries.find(key);
  return it == entries.end() ? nullptr : &it->second;
}

}  // namespace keel
