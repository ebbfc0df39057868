// check_fields(): a compile-time check that the `fields` of an options struct list all of its
// members. A member that they do not list is lost silently: to_config() does not write it, and
// from_config() does not read it.
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

namespace keel::config_internal {

// Initializes any member. Only declared: it is used in unevaluated operands.
struct AnyValue {
  template <class T>
  operator T() const;  // NOLINT: implicit
};

// Initializes any base class of an aggregate.
template <class Derived>
struct AnyBase {
  template <class T>
    requires(std::is_base_of_v<T, Derived> && !std::is_same_v<T, Derived>)
  operator T() const;  // NOLINT: implicit
};

// True if an aggregate accepts so many initializers. A base class counts as one.
template <class T, size_t... kIndex>
consteval bool accepts(std::index_sequence<kIndex...>) {
  return requires { T{(static_cast<void>(kIndex), AnyValue())...}; };
}
// True if an aggregate has so many members. Two attempts decide it; counting the members takes one
// for each.
template <class T, size_t kCount>
consteval bool has_members() {
  return accepts<T>(std::make_index_sequence<kCount>()) &&
         !accepts<T>(std::make_index_sequence<kCount + 1>());
}

// An object whose members can be named, but not read, in a constant expression.
template <class T>
union Unread {
  constexpr Unread() : nothing() {}
  constexpr ~Unread() {}  // NOLINT: a default destructor would be deleted
  char nothing;
  T value;
};
template <class T>
inline constinit Unread<T> unread;

// Returns the number of fields of an options struct whose `fields` are constexpr.
template <class Options>
constexpr size_t field_count() {
  size_t out = 0;
  Options::fields(unread<Options>.value, [&out](const char*, const auto&) { ++out; });
  return out;
}

template <size_t>
struct Constant {};
template <class Options>
concept CountableFields = std::is_aggregate_v<Options> && !requires {
  Options{AnyBase<Options>()};
} && requires { typename Constant<field_count<Options>()>; };

// The number of members that a struct declares as no part of its config:
//   // The callback cannot be written to a file.
//   static constexpr const char* kUnsaved[] = {"callback"};
template <class Options>
inline constexpr size_t kUnsavedCount = 0;
template <class Options>
  requires requires { Options::kUnsaved; }
inline constexpr size_t kUnsavedCount<Options> = std::size(Options::kUnsaved);

// True if `fields` list all members but those of kUnsaved.
template <class Options>
inline constexpr bool kFieldsListAllMembers =
    has_members<Options, field_count<Options>() + kUnsavedCount<Options>>();

// Fails to compile if members of Options are missing in its `fields` and in its kUnsaved. Does
// nothing if `fields` are not constexpr, or if Options derives from another struct.
template <class Options>
consteval void check_fields() {
  if constexpr (CountableFields<Options>) {
    static_assert(kFieldsListAllMembers<Options>,
                  "`fields` of this options struct must list each of its members once; name the "
                  "members that configs do not contain in `kUnsaved` (framework/config/config.h)");
  }
}

}  // namespace keel::config_internal
