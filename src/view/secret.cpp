#include "view/secret.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace cingulum::view {

Result<std::string> make_secret() {
  std::array<unsigned char, 24> bytes{};
  if (::getentropy(bytes.data(), bytes.size()) != 0) {
    return fail(ErrorKind::unavailable, "no random numbers from the operating system: {}", std::strerror(errno));
  }
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned different = 0;
  for (std::size_t i = 0; i < a.size(); ++i) different |= static_cast<unsigned char>(a[i] ^ b[i]);
  return different == 0;
}

}  // namespace cingulum::view
