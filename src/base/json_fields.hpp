// A struct as a JSON object. It says its members once, in the order in which they are written,
//   struct Input {
//     std::string option;
//     std::optional<double> weight;  // null where there is none
//     template <class Visit, class Self>
//     static void json_fields(Visit& visit, Self& self) {
//       visit("option", self.option);
//       visit("weight", self.weight);
//     }
//   };
// and write_json() and read_json() go there and back. Members are numbers, flags, texts, paths, JSON as it is, structs
// like this one, and optionals, lists and arrays of these. Whoever has more to say than one struct gives the same
// calls to a JsonWriter or a JsonReader. Included by .cpp files alone, since it includes all of nlohmann's; of a
// document of which a few members are read, see json_view.hpp.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/json_view.hpp"
#include "base/result.hpp"

namespace cingulum {

template <class T>
inline constexpr bool is_json_optional = false;
template <class T>
inline constexpr bool is_json_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_json_list = false;
template <class T>
inline constexpr bool is_json_list<std::vector<T>> = true;
template <class T, std::size_t count>
inline constexpr bool is_json_list<std::array<T, count>> = true;

class JsonWriter {
 public:
  template <class T>
  void operator()(const std::string& name, const T& value) {
    json_[name] = json_of(value);
  }
  template <class T>
  void optional(const std::string& name, const T& value) {
    (*this)(name, value);
  }
  [[nodiscard]] nlohmann::ordered_json take() { return std::move(json_); }

  template <class T>
  [[nodiscard]] static nlohmann::ordered_json json_of(const T& value) {
    if constexpr (requires(JsonWriter & writer) { T::json_fields(writer, value); }) {
      JsonWriter writer;
      T::json_fields(writer, value);
      return writer.take();
    } else if constexpr (is_json_optional<T>) {
      return value ? json_of(*value) : nlohmann::ordered_json();
    } else if constexpr (is_json_list<T>) {
      nlohmann::ordered_json list = nlohmann::ordered_json::array();
      for (const auto& entry : value) list.push_back(json_of(entry));
      return list;
    } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
      return value.string();
    } else {
      return value;
    }
  }

 private:
  nlohmann::ordered_json json_ = nlohmann::ordered_json::object();
};

// Keeps the first refusal, and reads nothing behind it.
class JsonReader {
 public:
  // The JSON outlives the reader; `place` names it in messages.
  JsonReader(const nlohmann::ordered_json& json, std::string place) : json_(json), place_(std::move(place)) {}

  template <class T>
  void operator()(const std::string& name, T& into) {
    if (!status_) return;
    if (json_[name].is_there()) return optional(name, into);
    refused_ = name;
    status_ = fail(ErrorKind::corrupt, "{} has no member '{}'", place_, name);
  }
  // The member of the struct stays as it is where the JSON has none.
  template <class T>
  void optional(const std::string& name, T& into) {
    if (!status_ || !json_[name].is_there()) return;
    status_ = read(json_[name].json(), fmt::format("{}.{}", place_, name), into);
    if (!status_) refused_ = name;
  }

  // What was refused first: "part.lengths.sum_mm is not a number", and the member's name.
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] const std::string& refused() const { return refused_; }

  template <class T>
  [[nodiscard]] static Status read(const nlohmann::ordered_json& json, const std::string& place, T& into) {
    const auto refuse = [&](std::string_view what) { return fail(ErrorKind::corrupt, "{} is not {}", place, what); };
    if constexpr (std::is_same_v<T, nlohmann::ordered_json>) {
      into = json;
    } else if constexpr (requires(JsonReader & reader) { T::json_fields(reader, into); }) {
      if (!json.is_object()) return refuse("an object");
      JsonReader reader(json, place);
      T::json_fields(reader, into);
      return reader.status();
    } else if constexpr (is_json_optional<T>) {
      into.reset();
      if (!json.is_null()) return read(json, place, into.emplace());
    } else if constexpr (is_json_list<T>) {
      return read_list(json, place, into);
    } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::filesystem::path>) {
      if (!json.is_string()) return refuse("a text");
      into = json.get<std::string>();
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) return refuse("true or false");
      into = json.get<bool>();
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!json.is_number() || !std::isfinite(json.get<T>())) return refuse("a number");
      into = json.get<T>();
    } else {
      static_assert(std::is_integral_v<T>);
      // A number above 2^63 would come back as a negative one.
      const bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<std::uint64_t>())
                                                  : std::is_signed_v<T> && json.is_number_integer() &&
                                                        std::in_range<T>(json.get<std::int64_t>());
      if (!fits) {
        return refuse(
            fmt::format("a whole number from {} to {}", std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
      }
      into = json.get<T>();
    }
    return {};
  }

 private:
  template <class List>
  [[nodiscard]] static Status read_list(const nlohmann::ordered_json& json, const std::string& place, List& into) {
    if (!json.is_array()) return fail(ErrorKind::corrupt, "{} is not a list", place);
    if constexpr (requires { into.resize(json.size()); }) {
      into.resize(json.size());
    } else if (json.size() != into.size()) {
      return fail(ErrorKind::corrupt, "{} is not a list of {}", place, into.size());
    }
    for (std::size_t i = 0; i < json.size(); ++i) CGL_TRY(read(json[i], fmt::format("{}[{}]", place, i), into[i]));
    return {};
  }

  JsonView json_;
  std::string place_;
  std::string refused_;
  Status status_;
};

// The value is a struct, or whatever else a member may be.
template <class T>
[[nodiscard]] nlohmann::ordered_json write_json(const T& value) {
  return JsonWriter::json_of(value);
}
// `place` names the JSON in the message; what `into` holds after a failure is not said.
template <class T>
[[nodiscard]] Status read_json(const nlohmann::ordered_json& json, const std::string& place, T& into) {
  return JsonReader::read(json, place, into);
}

}  // namespace cingulum
