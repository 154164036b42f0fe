// The fields of a message by name, known at compile time: CGL_RING_FIELDS(Reading, value, channel) beside the struct,
// in its namespace. The wire format (ring/edge/wire.hpp) and whoever prints messages walk them with for_each_field. A
// field that was forgotten in the list does not compile.
#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cingulum::ring {

template <class Message, class Member>
struct MessageField {
  std::string_view name;
  Member Message::*member;
};
template <class Message, class Member>
MessageField(const char*, Member Message::*) -> MessageField<Message, Member>;

// A plain struct whose fields are listed.
template <class T>
concept DescribedMessage = std::is_trivially_copyable_v<T> && std::is_aggregate_v<T> && requires(const T* message) {
  cgl_ring_fields(message);
  { T::message_name } -> std::convertible_to<std::string_view>;
};

template <DescribedMessage T>
[[nodiscard]] constexpr std::string_view message_name() {
  return T::message_name;
}

template <DescribedMessage T>
[[nodiscard]] constexpr std::size_t field_count() {
  return std::tuple_size_v<decltype(cgl_ring_fields(static_cast<const T*>(nullptr)))>;
}

// visit(name, pointer to member) for each field in order.
template <DescribedMessage T, class Visit>
constexpr void for_each_field(Visit&& visit) {
  std::apply([&](const auto&... field) { (visit(field.name, field.member), ...); },
             cgl_ring_fields(static_cast<const T*>(nullptr)));
}

namespace detail {

struct ConvertsToAnything {
  template <class T>
  operator T() const;
};

// How many initialisers the aggregate takes.
template <class T, class... Initialisers>
consteval std::size_t initialiser_count() {
  if constexpr (requires { T{Initialisers{}..., ConvertsToAnything{}}; }) {
    return initialiser_count<T, Initialisers..., ConvertsToAnything>();
  } else {
    return sizeof...(Initialisers);
  }
}

// Built-in arrays take one initialiser per element, so that counting tells nothing; such a struct is taken as it is.
template <class T, class... Members>
consteval bool all_fields_listed(const std::tuple<MessageField<T, Members>...>*) {
  if constexpr ((std::is_array_v<Members> || ...)) {
    return true;
  } else {
    return initialiser_count<T>() == sizeof...(Members);
  }
}
template <class T>
consteval bool all_fields_listed(const std::tuple<>*) {
  return std::is_empty_v<T>;
}

}  // namespace detail
}  // namespace cingulum::ring

// The usual recursion by __VA_OPT__, good for 64 fields.
#define CGL_RING_PARENS ()
#define CGL_RING_EXPAND(...) CGL_RING_EXPAND1(CGL_RING_EXPAND1(CGL_RING_EXPAND1(CGL_RING_EXPAND1(__VA_ARGS__))))
#define CGL_RING_EXPAND1(...) CGL_RING_EXPAND2(CGL_RING_EXPAND2(CGL_RING_EXPAND2(CGL_RING_EXPAND2(__VA_ARGS__))))
#define CGL_RING_EXPAND2(...) CGL_RING_EXPAND3(CGL_RING_EXPAND3(CGL_RING_EXPAND3(CGL_RING_EXPAND3(__VA_ARGS__))))
#define CGL_RING_EXPAND3(...) __VA_ARGS__
#define CGL_RING_EACH(Type, field, ...)  \
  ::cingulum::ring::MessageField{#field, \
                                 &Type::field} __VA_OPT__(, CGL_RING_EACH_AGAIN CGL_RING_PARENS(Type, __VA_ARGS__))
#define CGL_RING_EACH_AGAIN() CGL_RING_EACH

// CGL_RING_FIELDS(Type, field, ...): in the namespace of Type, after it.
#define CGL_RING_FIELDS(Type, ...)                                                                              \
  [[maybe_unused]] inline constexpr auto cgl_ring_fields(const Type*) {                                         \
    return std::make_tuple(__VA_OPT__(CGL_RING_EXPAND(CGL_RING_EACH(Type, __VA_ARGS__))));                      \
  }                                                                                                             \
  static_assert(::cingulum::ring::DescribedMessage<Type>,                                                       \
                #Type " must be a trivially copyable aggregate with a message_name");                           \
  static_assert(::cingulum::ring::detail::all_fields_listed<Type>(                                              \
                    static_cast<const decltype(cgl_ring_fields(static_cast<const Type*>(nullptr)))*>(nullptr)), \
                "every field of " #Type " must be listed")
