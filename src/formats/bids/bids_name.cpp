#include "formats/bids/bids_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace cingulum {
namespace {

// The entities that an output keeps of the series it was made of, in the order in which BIDS has them.
constexpr std::array<std::string_view, 8> kept_entities = {"sub", "ses", "acq", "rec", "dir", "run", "space", "res"};
// What is added for a tractogram, after BEP046's draft; `track` takes the getter.
constexpr std::string_view whole_brain = "tract-wholebrain";
constexpr std::string_view tractogram_suffix = "tractogram";
constexpr std::string_view made_mask = "desc-brain_mask";

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

std::optional<std::string_view> BidsName::label(std::string_view key) const {
  for (const auto& [name, value] : entities) {
    if (name == key) return value;
  }
  return std::nullopt;
}

bool is_bids_label(std::string_view label) {
  return !label.empty() &&
         std::all_of(label.begin(), label.end(), [](char c) { return is_letter_or_digit(c) || c == '+'; });
}

std::optional<BidsName> parse_bids_name(std::string_view file_name) {
  BidsName name;
  const std::size_t dot = file_name.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  name.extension = file_name.substr(dot);
  std::string_view rest = file_name.substr(0, dot);
  for (;;) {
    const std::size_t end = std::min(rest.find('_'), rest.size());
    const std::string_view word = rest.substr(0, end);
    if (end == rest.size()) {
      if (!is_bids_label(word)) return std::nullopt;
      name.suffix = word;
      return name;
    }
    const std::size_t dash = word.find('-');
    if (dash == std::string_view::npos || dash == 0 || !is_bids_label(word.substr(dash + 1))) return std::nullopt;
    if (name.label(word.substr(0, dash))) return std::nullopt;
    name.entities.emplace_back(word.substr(0, dash), word.substr(dash + 1));
    rest.remove_prefix(end + 1);
  }
}

Result<std::string> bids_label_of(std::string_view text, std::string_view key, std::string_view argument) {
  std::string_view label = text;
  const std::string prefix = fmt::format("{}-", key);
  if (label.starts_with(prefix)) label.remove_prefix(prefix.size());
  if (!is_bids_label(label)) {
    return fail(ErrorKind::invalid_argument, "{} '{}': a label has letters and digits alone", argument, text);
  }
  return std::string(label);
}

bool applies_to(const BidsName& candidate, const BidsName& file) {
  return std::all_of(candidate.entities.begin(), candidate.entities.end(),
                     [&](const auto& entity) { return file.label(entity.first) == entity.second; });
}

std::string bids_unit_name(const BidsName& series) {
  std::string name;
  for (const std::string_view key : kept_entities) {
    const auto label = series.label(key);
    if (label) name += fmt::format("{}{}-{}", name.empty() ? "" : "_", key, *label);
  }
  return name;
}

std::string bids_tractogram_name(const BidsName& series, std::string_view getter) {
  return fmt::format("{}_{}_track-{}_{}", bids_unit_name(series), whole_brain, getter, tractogram_suffix);
}

std::string bids_mask_name(const BidsName& series) {
  return fmt::format("{}_{}", bids_unit_name(series), made_mask);
}

}  // namespace cingulum
