// The page itself: one HTML file that needs nothing else, with its style, pictures and charts inside, readable on a
// wide and a narrow screen, light and dark, and on paper. It is given all numbers and pictures and adds none of its
// own; the same content gives the same bytes. Called by tract_report.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/argument_name.hpp"
#include "base/result.hpp"
#include "report/density_picture.hpp"
#include "report/page_parts.hpp"
#include "report/picture.hpp"
#include "report/survey.hpp"

namespace cingulum {

struct CountedReason {
  std::string name;
  std::uint64_t count = 0;
  std::string detail = {};
};

// A value with a 95 % interval where there is one.
struct ScoreRow {
  std::string name;
  std::string value;
  std::string interval = {};
  std::string meaning = {};
};

struct BundleRow {
  std::string name;
  std::uint64_t streamlines = 0;
  double overlap = 0;
  double overreach = 0;
  double f1 = 0;
};

struct ScorePart {
  std::string truth;  // what it was judged by
  std::vector<ScoreRow> rows;
  std::vector<BundleRow> bundles;
  std::vector<TableRow> false_connections;
};

struct ReportContent {
  std::string title;  // the file's name
  std::string subtitle;
  std::vector<std::string> warnings;
  ArgumentNaming naming = plain_argument_name;
  std::vector<Figure> figures;
  std::vector<CaptionedPicture> views;
  std::string views_note;
  LengthBins lengths;
  double median_length_mm = 0;
  std::vector<CountedReason> end_reasons;
  std::vector<CaptionedPicture> density_slices;
  std::vector<CaptionedPicture> density_projections;
  DensityScale density_scale;
  std::string density_note;
  std::optional<ScorePart> score;
  std::vector<TableRow> file;  // what the tractogram's file says of itself
  // Tables made from the sidecar of the run: title and rows of each.
  std::vector<std::pair<std::string, std::vector<TableRow>>> tables;
  std::vector<TableRow> inputs;                               // path and hash
  std::vector<std::pair<std::string, std::string>> commands;  // what it does, the command line
};

[[nodiscard]] Result<std::string> report_page(const ReportContent& content);

}  // namespace cingulum
