// How the codecs word a failure: the name that the metadata gives the codec, then what was expected and found.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "base/result.hpp"
#include "zarr/codec.hpp"

namespace cingulum::zarr {

template <class... Args>
[[nodiscard]] tl::unexpected<Error> codec_failure(const Codec& codec, ErrorKind kind, fmt::format_string<Args...> text,
                                                  Args&&... args) {
  return fail(kind, "codec {}: {}", codec.name, fmt::format(text, std::forward<Args>(args)...));
}

// Damage: what was to be decoded is not what an encoder writes.
template <class... Args>
[[nodiscard]] tl::unexpected<Error> codec_damage(const Codec& codec, fmt::format_string<Args...> text, Args&&... args) {
  return codec_failure(codec, ErrorKind::corrupt, text, std::forward<Args>(args)...);
}

}  // namespace cingulum::zarr
