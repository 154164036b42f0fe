#include "report/cohort_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <system_error>
#include <utility>

#include "base/json_view.hpp"
#include "base/quantity.hpp"
#include "dmri/score/score.hpp"
#include "formats/sidecar.hpp"
#include "report/html_text.hpp"
#include "report/page_parts.hpp"
#include "report/png.hpp"
#include "report/streamline_view.hpp"
#include "report/survey.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view cohort_style = R"css(
td.far { color: var(--bad); font-weight: 600; }
tr.far th::after { content: " \25CF"; color: var(--bad); }
td.picture img { height: 110px; width: auto; display: block; border-radius: 6px; background: #0b0e14; }
)css";

struct MeasureOfResult {
  const char* name;
  const char* label;
  std::optional<double> (*value)(const Json& result);
};

std::optional<double> number_of(const Json& result, const char* name) {
  return JsonView(result)[name].number();
}

std::optional<double> ratio_of(std::optional<double> part, std::optional<double> whole) {
  if (!part || !whole || *whole == 0) return std::nullopt;
  return *part / *whole;
}

// How often streamlines ended where the stopping map says so: the tissue's border, not a lost way.
std::optional<double> stopped_share(const Json& result) {
  const Json* const reasons = JsonView(result)["end_reasons"].object();
  if (reasons == nullptr) return std::nullopt;
  double all = 0;
  for (const Json& count : *reasons) all += JsonView(count).number().value_or(0);
  return ratio_of(number_of(*reasons, "stop_map"), all);
}

constexpr std::array<MeasureOfResult, 6> measures_of_result = {{
    {"streamlines", "streamlines", [](const Json& result) { return number_of(result, "kept"); }},
    {"points", "points", [](const Json& result) { return number_of(result, "points"); }},
    {"mean_length_mm", "mean length, mm", [](const Json& result) { return number_of(result, "mean_length_mm"); }},
    {"median_length_mm", "median length, mm", [](const Json& result) { return number_of(result, "median_length_mm"); }},
    {"kept_share", "kept of those tracked",
     [](const Json& result) { return ratio_of(number_of(result, "kept"), number_of(result, "streamlines")); }},
    {"stopped_share", "ends at the stopping map", stopped_share},
}};
constexpr std::array<std::pair<const char*, const char*>, 3> measures_of_score = {
    {{"valid", "valid"}, {"overlap", "overlap"}, {"f1", "F1"}}};

bool is_tractogram(const fs::path& file) {
  const std::string extension = file.extension().string();
  return extension == ".trx" || extension == ".trk" || extension == ".tck";
}

Result<std::vector<fs::path>> tractograms_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->path().filename().string().starts_with('.')) {
      entry.disable_recursion_pending();
      continue;
    }
    if (is_tractogram(entry->path()) && entry->is_regular_file(error)) files.push_back(entry->path());
  }
  if (error) return fail(ErrorKind::io, "listing {}: {}", folder.string(), error.message());
  std::sort(files.begin(), files.end());
  return files;
}

double median_of(std::vector<double> values) {
  const std::size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle), values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (upper + *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle))) / 2;
}

// The page may be shared: messages name files within the folder alone.
std::string within_folder(std::string text, const fs::path& folder) {
  const std::string prefix = (folder / "").string();
  for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at)) {
    text.erase(at, prefix.size());
  }
  return text;
}

void take_sidecar(CohortSubject& subject) {
  const auto sidecar = read_sidecar(subject.file);
  const Json* const result = sidecar ? JsonView(*sidecar)["result"].object() : nullptr;
  if (result == nullptr) subject.problem = sidecar ? "its sidecar has no result" : sidecar.error().message();
  for (const MeasureOfResult& measure : measures_of_result) {
    subject.values.push_back(result != nullptr ? measure.value(*result) : std::nullopt);
  }
}

void take_score(CohortSubject& subject, const CohortRequest& request, ThreadPool& pool) {
  RunContext silent;
  silent.cancel = request.cancel;
  silent.progress.style = ProgressStyle::silent;
  const auto score = score_tractogram(subject.file, *request.truth, {}, pool, silent);
  if (!score) {
    if (subject.problem.empty()) subject.problem = score.error().message();
    subject.values.resize(subject.values.size() + measures_of_score.size());
    return;
  }
  for (const double value : {score->valid.value, score->any.overlap.value, score->any.f1.value}) {
    subject.values.push_back(std::isfinite(value) ? std::optional<double>(value) : std::nullopt);
  }
}

// The three views side by side.
Result<std::string> small_picture(const fs::path& file, const CohortRequest& request, ThreadPool& pool) {
  SurveyOptions options;
  options.max_drawn = 3000;
  options.max_drawn_points = 1'000'000;
  options.cancel = request.cancel;
  CGL_TRY_ASSIGN(const TractogramSurvey survey, survey_tractogram(file, options, pool));
  if (survey.drawn.positions.empty()) return std::string();
  const WorldBox box = bounding_box(survey.drawn);
  const int pixels = request.picture_pixels;
  Picture all(3 * pixels, pixels);
  for (std::size_t i = 0; i < all_view_sides.size(); ++i) {
    const ViewSide side = all_view_sides[i];
    paste(all, draw_streamlines(survey.drawn, side, frame_around(box, side, pixels), pool),
          static_cast<int>(i) * pixels, 0);
  }
  return png_data_uri(all);
}

std::string shown_value(double value) {
  if (value == std::floor(value) && std::fabs(value) < 1e15) {
    return html_count(static_cast<std::uint64_t>(std::max(value, 0.0)));
  }
  return fmt::format("{:.3g}", value);
}

std::string row_of(const CohortSubject& subject, const std::string& picture) {
  std::string html =
      fmt::format("<tr{}><th>{}</th>", subject.outlying.empty() ? "" : " class=\"far\"", html_text(subject.name));
  for (std::size_t i = 0; i < subject.values.size(); ++i) {
    const bool far = std::find(subject.outlying.begin(), subject.outlying.end(), i) != subject.outlying.end();
    html += fmt::format("<td class=\"number{}\">{}</td>", far ? " far" : "",
                        subject.values[i] ? shown_value(*subject.values[i]) : "");
  }
  html +=
      fmt::format("<td class=\"picture\">{}</td><td>{}</td></tr>\n",
                  picture.empty() ? "" : fmt::format("<img alt=\"\" src=\"{}\">", picture), html_text(subject.problem));
  return html;
}

std::string head_of_page(const Cohort& cohort) {
  const auto count = [&](auto&& predicate) {
    return std::count_if(cohort.subjects.begin(), cohort.subjects.end(), predicate);
  };
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"generator\" content=\"Cingulum\">\n<title>Tractograms of a cohort</title>\n<style>{}{}</style>\n"
      "</head>\n<body>\n<main>\n<header>\n<h1>Tractograms of a cohort</h1>\n<p>{} tractograms, {} far from the others, "
      "{} "
      "with a problem</p>\n</header>\n",
      page_style(), cohort_style, html_count(cohort.subjects.size()),
      count([](const CohortSubject& subject) { return !subject.outlying.empty(); }),
      count([](const CohortSubject& subject) { return !subject.problem.empty(); }));
  html += fmt::format(
      "<p class=\"note\">A value is marked where it lies more than {} deviations from the median: 1.4826 times the "
      "median "
      "of the distances to it is one.</p>\n<div class=\"sheet scroll\"><table>\n<thead><tr><th></th>",
      far_deviations);
  for (const CohortMeasure& measure : cohort.measures) {
    html += fmt::format("<th class=\"number\">{}</th>", html_text(measure.label));
  }
  html += "<th></th><th></th></tr><tr><th>median</th>";
  for (const CohortMeasure& measure : cohort.measures) {
    html += fmt::format("<th class=\"number\">{}</th>", shown_value(measure.median));
  }
  return html + "<th></th><th></th></tr></thead>\n<tbody>\n";
}

}  // namespace

std::vector<bool> find_outliers(const std::vector<std::optional<double>>& values, double& median, double& deviation) {
  constexpr std::size_t fewest = 5;
  constexpr double of_normal = 1.4826;
  std::vector<bool> far(values.size(), false);
  std::vector<double> there;
  for (const auto& value : values) {
    if (value) there.push_back(*value);
  }
  median = deviation = 0;
  if (there.empty()) return far;
  median = median_of(there);
  std::vector<double> distances;
  for (const double value : there) distances.push_back(std::fabs(value - median));
  deviation = of_normal * median_of(distances);
  if (there.size() < fewest || deviation == 0) return far;
  for (std::size_t i = 0; i < values.size(); ++i) {
    far[i] = values[i] && std::fabs(*values[i] - median) > far_deviations * deviation;
  }
  return far;
}

Result<Cohort> survey_cohort(const CohortRequest& request, ThreadPool& pool, const std::function<void()>& advance) {
  CGL_TRY_ASSIGN(const std::vector<fs::path> files, tractograms_below(request.folder));
  if (files.empty()) {
    return fail(ErrorKind::not_found, "{}: there is no tractogram in it", request.folder.string());
  }
  Cohort cohort;
  for (const MeasureOfResult& measure : measures_of_result) cohort.measures.push_back({measure.name, measure.label});
  if (request.truth) {
    for (const auto& [name, label] : measures_of_score) cohort.measures.push_back({name, label});
  }
  for (const fs::path& file : files) {
    CGL_TRY(request.cancel.check());
    CohortSubject subject;
    subject.name = file.stem().string();
    subject.file = file;
    take_sidecar(subject);
    if (request.truth) take_score(subject, request, pool);
    subject.problem = within_folder(std::move(subject.problem), request.folder);
    cohort.subjects.push_back(std::move(subject));
    if (advance) advance();
  }
  for (std::size_t m = 0; m < cohort.measures.size(); ++m) {
    std::vector<std::optional<double>> values;
    for (const CohortSubject& subject : cohort.subjects) values.push_back(subject.values[m]);
    const std::vector<bool> far = find_outliers(values, cohort.measures[m].median, cohort.measures[m].deviation);
    for (std::size_t i = 0; i < far.size(); ++i) {
      if (far[i]) cohort.subjects[i].outlying.push_back(m);
    }
  }
  return cohort;
}

Json cohort_json(const Cohort& cohort) {
  Json measures = Json::object();
  for (const CohortMeasure& measure : cohort.measures) {
    measures[measure.name] = {{"median", measure.median}, {"deviation", measure.deviation}};
  }
  Json subjects = Json::array();
  for (const CohortSubject& subject : cohort.subjects) {
    Json row = {{"name", subject.name}};
    for (std::size_t i = 0; i < subject.values.size(); ++i) {
      row[cohort.measures[i].name] = subject.values[i] ? Json(*subject.values[i]) : Json();
    }
    Json outlying = Json::array();
    for (const std::size_t i : subject.outlying) outlying.push_back(cohort.measures[i].name);
    row["outlying"] = std::move(outlying);
    if (!subject.problem.empty()) row["problem"] = subject.problem;
    subjects.push_back(std::move(row));
  }
  return {{"measures", std::move(measures)}, {"subjects", std::move(subjects)}};
}

Status write_cohort_page(const fs::path& path, const Cohort& cohort, const CohortRequest& request,
                         const WriteOptions& options, ThreadPool& pool, const std::function<void()>& advance) {
  CGL_TRY_ASSIGN(AtomicFile page, AtomicFile::create(path, options));
  CGL_TRY(page.append(head_of_page(cohort)));
  for (const CohortSubject& subject : cohort.subjects) {
    CGL_TRY(request.cancel.check());
    CohortSubject shown = subject;
    std::string picture;
    if (request.picture_pixels > 0) {
      auto made = small_picture(subject.file, request, pool);
      if (made) {
        picture = std::move(*made);
      } else if (made.error().kind() == ErrorKind::interrupted) {
        return tl::make_unexpected(std::move(made.error()));
      } else if (shown.problem.empty()) {
        shown.problem = within_folder(made.error().message(), request.folder);
      }
    }
    CGL_TRY(page.append(row_of(shown, picture)));
    if (advance) advance();
  }
  CGL_TRY(page.append("</tbody></table></div>\n<footer>Made by Cingulum.</footer>\n</main>\n</body>\n</html>\n"));
  return page.commit();
}

}  // namespace cingulum
