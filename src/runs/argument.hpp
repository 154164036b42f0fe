// One argument of a run as data: name, type, unit, range, help and default. The tables of requests (request_table.hpp)
// and the verbs of the command line are lists of these; help, documentation, completion, Python's signatures and the
// controls of a page are made from them. Parsing of values is in argument_value.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace cingulum {

enum class ArgumentType {
  text,
  file_in,      // must exist (a folder will do: Zarr)
  file_out,     // must not exist, or --force is given; its folder must
  integer,      // std::int64_t
  real,         // double, "2" or with its unit "2mm"
  length,       // Length: "1mm", "0.5vox"; a bare number is in the argument's unit
  angle,        // double, degrees: "45" or "45deg"
  bytes,        // std::uint64_t: "512M", "1.5 GiB"
  key,          // std::uint64_t, all 64 bits: "42", "0xfeed"
  choice,       // one of `choices`
  flag,         // bool, false unless given
  device_list,  // std::vector<std::string>: "cuda:0,cpu"
};

// The metavar of an argument that names a sphere, or a file with its directions.
inline constexpr const char* sphere_metavar = "NAME|FILE";

enum class LengthUnit { millimetre, voxel };

// A length as the user gave it; a voxel is the smallest voxel edge of the image in question.
struct Length {
  double value = 0;
  LengthUnit unit = LengthUnit::millimetre;

  [[nodiscard]] double in_mm(double smallest_voxel_edge_mm) const noexcept {
    return unit == LengthUnit::millimetre ? value : value * smallest_voxel_edge_mm;
  }
  friend bool operator==(const Length&, const Length&) = default;
};

// Accepted numbers, in the argument's unit. Both ends are included unless `above` says "more than the minimum".
struct Range {
  std::optional<double> minimum = {};
  std::optional<double> maximum = {};
  bool above = false;
};

struct Argument {
  std::string name;  // "out" is given as --out; a positional argument is named by its metavar
  ArgumentType type = ArgumentType::text;
  std::string help = {};     // a sentence without the full stop
  std::string metavar = {};  // FILE, N, ...; by type when empty
  std::string unit = {};     // shown for numbers; for a length the unit of a bare number: "mm" (when empty) or "vox"
  Range range = {};
  std::string default_text = {};  // as the user would write it; empty: no value unless given
  std::string default_note = {};  // what help says of a default that the run itself finds, from other arguments
  std::vector<std::string> choices = {};
  char letter = 0;  // -o
  bool positional = false;
  bool required = false;
  bool repeatable = false;     // may be given several times; a positional one takes all that remain
  bool takes_several = false;  // of a repeatable option: one mention takes all words up to the next option
  // The actions that take it, where its verb has several (`cingulum oct stitch`); others refuse it. Empty: all do.
  std::vector<std::string> actions = {};
};

// Arguments that several verbs and requests have: the key of random numbers, where it is computed, by how many threads,
// and whether outputs that exist are replaced.
[[nodiscard]] Argument seed_argument();
[[nodiscard]] Argument device_argument();
[[nodiscard]] Argument threads_argument();
[[nodiscard]] Argument force_argument();

// One value of an argument, typed as ArgumentType says.
using ArgumentValue =
    std::variant<std::string, std::int64_t, std::uint64_t, double, Length, bool, std::vector<std::string>>;

// An argument in the form of text, as a page, a preset, Python or a sidecar names it: several texts where it is
// repeatable, none where it is a flag.
struct ArgumentText {
  std::string name;  // as in the table: "max-angle"
  std::vector<std::string> texts = {};
  bool is_flag = false;
  friend bool operator==(const ArgumentText&, const ArgumentText&) = default;

  template <class Visit, class Self>
  static void json_fields(Visit& visit, Self& self) {
    visit("name", self.name);
    visit("texts", self.texts);
    visit("flag", self.is_flag);
  }
};

}  // namespace cingulum
