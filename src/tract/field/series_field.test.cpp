#include "tract/field/series_field.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "base/argument_name.hpp"
#include "base/atomic_file.hpp"
#include "base/log.hpp"
#include "formats/nifti.hpp"
#include "support/small_series.hpp"
#include "support/temporary_folder.hpp"
#include "tract/field/file_field.hpp"
#include "tract/field/fit_key.hpp"

namespace cingulum {
namespace {

const ProgressOptions silent = {.style = ProgressStyle::silent, .stream = nullptr, .clock = {}};

using test::SmallSeries;

// Fibres along x in the lower half, along y in the upper one.
SmallSeries make_arrays() {
  constexpr std::size_t voxels = 9 * 8 * 7;
  std::mt19937 random(9);
  SmallSeries arrays =
      test::make_small_series({{9, 8, 7}, {-2, 0, 0, 8, 0, 2, 0, -7, 0, 0, 2, -6}, 5, 10}, random,
                              [](std::size_t v, const numerics::Vec3d& g) { return v < voxels / 2 ? g.x : g.y; });
  for (std::size_t v = 0; v < voxels; ++v) {
    arrays.mask.push_back(v % 9 > 0 ? 1 : 0);
    arrays.stop_map.push_back(v % 9 < 7 ? 0.5f : 0.05f);
  }
  return arrays;
}

SeriesFieldFiles write_files(const SmallSeries& arrays, const TemporaryFolder& folder) {
  SeriesFieldFiles files;
  files.series = {.dwi = folder / "dwi.nii.gz",
                  .bvals = folder / "dwi.bval",
                  .bvecs = folder / "dwi.bvec",
                  .grad = {},
                  .mask = folder / "mask.nii.gz"};
  const auto& geometry = arrays.head.geometry;
  const auto volumes = static_cast<std::int64_t>(arrays.head.table.size());
  EXPECT_TRUE(write_image(files.series.dwi, geometry, volumes, arrays.values));
  const std::vector<float> mask(arrays.mask.begin(), arrays.mask.end());
  EXPECT_TRUE(write_image(files.series.mask, geometry, 1, mask));
  EXPECT_TRUE(write_image(folder / "stop.nii.gz", geometry, 1, arrays.stop_map));
  EXPECT_TRUE(write_file_atomically(files.series.bvals, format_bvals(arrays.head.table), {}));
  EXPECT_TRUE(write_file_atomically(files.series.bvecs, format_bvecs(arrays.head.table), {}));
  EXPECT_TRUE(write_file_atomically(folder / "response.txt", "0.0017 0.0002 0.0002 1000\n", {}));
  return files;
}

SeriesFieldRequest request_for(FieldModel model, bool bootstrap) {
  SeriesFieldRequest request;
  request.series.frame = WantedFrame::voxel;
  request.field.model = model;
  request.field.bootstrap = bootstrap;
  request.sphere = named_sphere("small").value();
  return request;
}

void expect_equal(const TrackingData& a, const TrackingData& b) {
  EXPECT_EQ(a.geometry, b.geometry);
  EXPECT_EQ(a.mask, b.mask);
  EXPECT_EQ(a.stop_map, b.stop_map);
  EXPECT_EQ(a.prepared.facts.dump(), b.prepared.facts.dump());
  EXPECT_EQ(a.prepared.warnings, b.prepared.warnings);
  EXPECT_EQ(a.prepared.field.kind, b.prepared.field.kind);
  EXPECT_EQ(a.prepared.field.record_of_voxel, b.prepared.field.record_of_voxel);
  ASSERT_EQ(a.prepared.field.records.size(), b.prepared.field.records.size());
  EXPECT_TRUE(
      std::equal(a.prepared.field.records.begin(), a.prepared.field.records.end(), b.prepared.field.records.begin()));
}

TEST(series_field, arrays_and_files_give_the_same_field_of_every_model) {
  const SmallSeries arrays = make_arrays();
  const auto pool = ThreadPool::create(2);
  struct Case {
    FieldModel model;
    bool bootstrap;
    bool stop_map;
  };
  for (const Case& c : {Case{FieldModel::opdt, true, false}, Case{FieldModel::csa, false, true},
                        Case{FieldModel::csd, false, true}, Case{FieldModel::dti, false, false}}) {
    const TemporaryFolder folder;
    SeriesFieldFiles files = write_files(arrays, folder);
    if (c.stop_map) files.stop_map = folder / "stop.nii.gz";
    if (c.model == FieldModel::csd) files.response = folder / "response.txt";
    SeriesFieldRequest request = request_for(c.model, c.bootstrap);
    const auto head = read_series_head(files.series);
    ASSERT_TRUE(head) << head.error().message();
    const auto read = read_series_field(files, *head, request, **pool, silent);
    ASSERT_TRUE(read) << read.error().message();

    auto series = series_of_arrays(*head, arrays.values, arrays.mask, request.series, **pool);
    ASSERT_TRUE(series) << series.error().message();
    if (c.model == FieldModel::csd) request.field.response = parse_response("0.0017 0.0002 0.0002 1000").value();
    std::optional<std::vector<float>> stop_map;
    if (c.stop_map) stop_map = arrays.stop_map;
    const auto made = make_series_field(std::move(*series), stop_map, request, **pool, silent);
    ASSERT_TRUE(made) << made.error().message();
    expect_equal(*read, *made);
    EXPECT_GT(made->prepared.field.record_count(), 100U);
    EXPECT_EQ(made->prepared.facts["bvec_frame"], "voxel");
  }
}

// What is said while it lives, also what only --verbose shows.
struct KeptLog final : LogSink {
  using Lines = std::vector<std::pair<LogLevel, std::string>>;
  KeptLog() {
    Log::standard().set_sink(this);
    Log::standard().set_level(LogLevel::debug);
  }
  ~KeptLog() override {
    Log::standard().set_level(LogLevel::info);
    Log::standard().set_sink(nullptr);
  }
  // Lines "JOB: PART: 0.123 s" are of parts, without their times.
  void write(LogLevel level, std::string_view text) override {
    if (level == LogLevel::debug && text.ends_with(" s")) {
      parts.emplace_back(text.substr(0, text.rfind(": ")));
    } else {
      lines.emplace_back(level, text);
    }
  }
  std::vector<std::string> parts;
  Lines lines;
};

TEST(series_field, every_part_says_what_it_took) {
  using Parts = std::vector<std::string>;
  const SmallSeries arrays = make_arrays();
  const auto pool = ThreadPool::create(2);
  const TemporaryFolder folder;
  SeriesFieldFiles files = write_files(arrays, folder);
  const auto head = read_series_head(files.series);
  ASSERT_TRUE(head) << head.error().message();
  const auto parts_of = [&](FieldModel model, bool bootstrap) {
    const KeptLog kept;
    EXPECT_TRUE(read_series_field(files, *head, request_for(model, bootstrap), **pool, silent));
    return kept.parts;
  };
  EXPECT_EQ(parts_of(FieldModel::csa, true),
            (Parts{"series: mask", "series: reading", "series: opening the device", "series: gradient check",
                   "preparing: tensors", "model: volumes, response and voxels in reach", "model: bootstrap and field",
                   "preparing: model and field"}));
  files.stop_map = folder / "stop.nii.gz";
  EXPECT_EQ(parts_of(FieldModel::csa, false),
            (Parts{"series: mask", "series: reading", "series: opening the device", "series: gradient check",
                   "model: volumes, response and voxels in reach", "model: fit", "model: field",
                   "preparing: model and field"}));
}

TEST(series_field, what_is_known_of_a_series_is_said_as_loudly_as_it_matters) {
  const SmallSeries arrays = make_arrays();
  const auto pool = ThreadPool::create(2);
  const SeriesFieldRequest request = request_for(FieldModel::opdt, true);
  const auto said_of = [&](const std::function<void(SettledSeries&)>& change) {
    auto series = series_of_arrays(arrays.head, arrays.values, arrays.mask, request.series, **pool);
    EXPECT_TRUE(series);
    series->frame.warning.clear();
    series->frame.not_checked.clear();
    series->frame.check = GradientCheck{};
    series->frame.check->verdict = GradientVerdict::agrees;
    series->frame.check->message = "the check's words";
    change(*series);
    const KeptLog kept;
    const auto made = make_series_field(std::move(*series), arrays.stop_map, request, **pool, silent);
    EXPECT_TRUE(made);
    // A warning stays with the result.
    std::vector<std::string> warnings;
    for (const auto& [level, text] : kept.lines) {
      if (level == LogLevel::warning) warnings.push_back(text);
    }
    EXPECT_EQ(made ? made->prepared.warnings : std::vector<std::string>(), warnings);
    return kept.lines;
  };
  using Lines = KeptLog::Lines;
  EXPECT_EQ(said_of([](SettledSeries&) {}), Lines{});
  EXPECT_EQ(said_of([](SettledSeries& series) {
              series.frame.check.reset();
              series.frame.not_checked = "four directions";
            }),
            (Lines{{LogLevel::debug, "no gradient check: four directions"}}));
  EXPECT_EQ(said_of([](SettledSeries& series) { series.frame.check->verdict = GradientVerdict::undecided; }),
            (Lines{{LogLevel::debug, "the check's words"}}));
  EXPECT_EQ(said_of([](SettledSeries& series) { series.frame.check->verdict = GradientVerdict::another_is_better; }),
            (Lines{{LogLevel::info, "the check's words"}}));
  EXPECT_EQ(said_of([](SettledSeries& series) {
              series.frame.check->verdict = GradientVerdict::another_is_better;
              series.frame.warning = "another frame is better";
            }),
            (Lines{{LogLevel::warning, "another frame is better"}}));
  EXPECT_EQ(said_of([](SettledSeries& series) { series.dwi.signals.replaced = 1; }),
            (Lines{{LogLevel::warning, "1 values of the series are not finite and count as 0"}}));
}

// Every voxel of the mask is one fibre: 448 of them, and 27 in a box of one voxel to each side.
TEST(series_field, a_response_is_estimated_in_the_box_that_is_asked_for_and_said) {
  const SmallSeries arrays = make_arrays();
  const auto pool = ThreadPool::create(2);
  SeriesFieldRequest request = request_for(FieldModel::csd, false);
  const auto facts_of = [&]() -> nlohmann::ordered_json {
    auto series = series_of_arrays(arrays.head, arrays.values, arrays.mask, request.series, **pool);
    EXPECT_TRUE(series);
    const auto made = make_series_field(std::move(*series), arrays.stop_map, request, **pool, silent);
    EXPECT_TRUE(made) << made.error().message();
    return made ? made->prepared.facts : nlohmann::ordered_json();
  };
  const auto plain = facts_of();
  EXPECT_EQ(plain["response_fa"], 0.7);
  EXPECT_EQ(plain["response_radius"], 10);
  EXPECT_FALSE(plain.contains("response_centre"));
  EXPECT_EQ(plain["response_voxels"], 448);
  request.field.response_box = {.centre = {{3, 4, 2}}, .radius = 1, .least_fa = 0.75};
  const auto small = facts_of();
  EXPECT_EQ(small["response_fa"], 0.75);
  EXPECT_EQ(small["response_radius"], 1);
  EXPECT_EQ(small["response_centre"], (std::vector<int>{3, 4, 2}));
  EXPECT_EQ(small["response_voxels"], 27);
}

TEST(series_field, a_response_is_read_where_one_is_named_and_the_model_takes_one) {
  const auto pool = ThreadPool::create(2);
  const TemporaryFolder folder;
  SeriesFieldFiles files = write_files(make_arrays(), folder);
  files.stop_map = folder / "stop.nii.gz";
  const auto head = read_series_head(files.series);
  ASSERT_TRUE(head) << head.error().message();
  const auto read = [&](FieldModel model) {
    return read_series_field(files, *head, request_for(model, false), **pool, silent);
  };
  const auto estimated = read(FieldModel::csd);
  ASSERT_TRUE(estimated) << estimated.error().message();
  EXPECT_EQ(estimated->prepared.facts["response_voxels"], 448);
  files.response = folder / "not_there.txt";
  EXPECT_FALSE(read(FieldModel::csd));
  EXPECT_TRUE(read(FieldModel::csa));
}

TEST(series_field, a_response_that_cannot_be_estimated_is_told_without_naming_options) {
  SmallSeries arrays = make_arrays();
  std::fill(arrays.values.begin(), arrays.values.end(), 500.0f);
  const auto pool = ThreadPool::create(1);
  const SeriesFieldRequest request = request_for(FieldModel::csd, false);
  auto series = series_of_arrays(arrays.head, arrays.values, arrays.mask, request.series, **pool);
  ASSERT_TRUE(series) << series.error().message();
  const auto made = make_series_field(std::move(*series), arrays.stop_map, request, **pool, silent);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message().find("estimating the response"), std::string::npos);
  EXPECT_EQ(made.error().message().find("--"), std::string::npos) << made.error().message();
}

// 37 directions suffice for the 28 coefficients of degree 6, not for the 45 of degree 8.
TEST(series_field, a_degree_that_directions_do_not_suffice_for_is_lowered_and_told) {
  const SmallSeries arrays = make_arrays();
  const auto pool = ThreadPool::create(2);
  ASSERT_EQ(arrays.head.table.size(), 1U + 37U);
  for (const int degree : {6, 8}) {
    SeriesFieldRequest request = request_for(FieldModel::csa, false);
    request.field.degree = degree;
    auto series = series_of_arrays(arrays.head, arrays.values, arrays.mask, request.series, **pool);
    ASSERT_TRUE(series) << series.error().message();
    const auto made = make_series_field(std::move(*series), arrays.stop_map, request, **pool, silent);
    ASSERT_TRUE(made) << made.error().message();
    const std::string warning =
        fmt::format("{} 8 needs 45 directions, there are 37: lowered to 6", argument_name("sh_order"));
    EXPECT_EQ(std::ranges::count(made->prepared.warnings, warning), degree == 8 ? 1 : 0);
    EXPECT_EQ(made->prepared.facts["degree"], 6);
    EXPECT_EQ(made->prepared.facts["weighted_volumes"], 37);
    EXPECT_EQ(made->prepared.facts["b0_volumes"], 1);
  }
}

TEST(series_field, a_stopping_map_of_another_size_is_refused) {
  const SmallSeries arrays = make_arrays();
  const auto pool = ThreadPool::create(1);
  const SeriesFieldRequest request = request_for(FieldModel::opdt, true);
  auto series = series_of_arrays(arrays.head, arrays.values, arrays.mask, request.series, **pool);
  ASSERT_TRUE(series);
  EXPECT_FALSE(make_series_field(std::move(*series), std::vector<float>(7, 1.0f), request, **pool, silent));
}

TEST(series_field, a_kept_field_is_the_one_that_was_made) {
  const TemporaryFolder folder;
  const SeriesFieldFiles files = write_files(make_arrays(), folder);
  const auto pool = ThreadPool::create(1);
  const SeriesFieldRequest request = request_for(FieldModel::opdt, true);
  const auto head = read_series_head(files.series);
  ASSERT_TRUE(head);
  const FitCache cache(folder / "kept");
  int made = 0;
  const auto make = [&]() {
    ++made;
    return read_series_field(files, *head, request, **pool, silent);
  };
  const auto first = kept_or_made(cache, "build", files, head->geometry, request, make);
  const auto second = kept_or_made(cache, "build", files, head->geometry, request, make);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(made, 1);
  expect_equal(*first, *second);
  ASSERT_TRUE(kept_or_made(cache, "another build", files, head->geometry, request, make));
  EXPECT_EQ(made, 2);
}

// What a key is made of, member by member. The structured bindings name every member of every request: one that is
// added does not compile until it is named here, and then it wants a change in the list below.
TEST(fit_key, every_member_of_the_request_is_a_part_of_it) {
  const TemporaryFolder folder;
  const SeriesFieldFiles files = write_files(make_arrays(), folder);
  using Change = std::function<void(SeriesFieldRequest&)>;
  std::vector<std::pair<std::string, Change>> changes;
  const auto change = [&](const char* name, Change body) { changes.emplace_back(name, std::move(body)); };
  { [[maybe_unused]] const auto& [series, field, sphere] = SeriesFieldRequest{}; }
  {
    [[maybe_unused]] const auto& [b0_threshold, frame, check_frame] = SeriesRequest{};
    change("series.b0_threshold", [](auto& r) { r.series.b0_threshold += 1; });
    change("series.frame", [](auto& r) { r.series.frame = WantedFrame::world; });
    change("series.check_frame", [](auto& r) { r.series.check_frame = false; });
  }
  {
    [[maybe_unused]] const auto& [model, bootstrap, degree, smoothing, min_signal, shell, response, response_box,
                                  amplitudes, stop_threshold, reach_voxels] = FieldRequest{};
    change("field.model", [](auto& r) { r.field.model = FieldModel::csa; });
    change("field.bootstrap", [](auto& r) { r.field.bootstrap = true; });
    change("field.degree", [](auto& r) { r.field.degree = 6; });
    change("field.smoothing", [](auto& r) { r.field.smoothing = 0.007; });
    change("field.min_signal", [](auto& r) { r.field.min_signal = {0.002, true}; });
    change("field.min_signal in units of the data", [](auto& r) { r.field.min_signal = {0.001, false}; });
    change("field.shell", [](auto& r) { r.field.shell = 1500.0; });
    change("field.amplitudes", [](auto& r) { r.field.amplitudes = true; });
    change("field.stop_threshold", [](auto& r) { r.field.stop_threshold = 0.2; });
    change("field.reach_voxels", [](auto& r) { r.field.reach_voxels = 2; });
  }
  {
    [[maybe_unused]] const auto& [centre, radius, least_fa, widen] = ResponseBox{};
    change("field.response_box.centre", [](auto& r) { r.field.response_box.centre = {{1, 2, 3}}; });
    change("field.response_box.centre[2]", [](auto& r) { r.field.response_box.centre = {{1, 2, 4}}; });
    change("field.response_box.radius", [](auto& r) { r.field.response_box.radius = 11; });
    change("field.response_box.least_fa", [](auto& r) { r.field.response_box.least_fa = 0.6; });
    change("field.response_box.widen", [](auto& r) { r.field.response_box.widen = true; });
  }
  {
    // `voxels` and `box` say where a response comes from and do not change the fit.
    [[maybe_unused]] const auto& [eigenvalues, s0, zonal, voxels, box] = FibreResponse{};
    change("field.response", [](auto& r) { r.field.response = FibreResponse{}; });
    change("field.response.eigenvalues", [](auto& r) {
      r.field.response = FibreResponse{.eigenvalues = std::array<double, 3>{1.7e-3, 2e-4, 2e-4}, .zonal = {}};
    });
    change("field.response.s0",
           [](auto& r) { r.field.response = FibreResponse{.eigenvalues = {}, .s0 = 1, .zonal = {}}; });
    change("field.response.zonal", [](auto& r) {
      r.field.response = FibreResponse{.eigenvalues = {}, .zonal = {1, 2}};
    });
  }
  change("sphere", [](auto& r) { r.sphere = named_sphere("mirror406").value(); });
  change("sphere.is_hemisphere", [](auto& r) { r.sphere.is_hemisphere = !r.sphere.is_hemisphere; });
  change("one direction of the sphere", [](auto& r) { r.sphere.directions.back().x += 1e-16 + 1e-15; });

  const auto key_of = [&](const SeriesFieldFiles& of, const SeriesFieldRequest& request, std::string_view build) {
    const auto key = FitKey::create(build, of, request);
    EXPECT_TRUE(key);
    return key ? key->json().dump() : std::string();
  };
  const SeriesFieldRequest plain = request_for(FieldModel::opdt, false);
  std::map<std::string, std::string> whose = {{key_of(files, plain, "build"), "nothing"}};
  const auto expect_another = [&](const std::string& key, const std::string& name) {
    const auto [at, is_new] = whose.emplace(key, name);
    EXPECT_TRUE(is_new) << name << " has the key of " << at->second;
  };
  for (const auto& [name, body] : changes) {
    SeriesFieldRequest request = plain;
    body(request);
    expect_another(key_of(files, request, "build"), name);
    EXPECT_EQ(key_of(files, request, "build"), key_of(files, request, "build")) << name;
  }
  expect_another(key_of(files, plain, "another build"), "build");
  // The key depends on the files, too, each of which has another content here.
  {
    [[maybe_unused]] const auto& [series, stop_map, response] = SeriesFieldFiles{};
    [[maybe_unused]] const auto& [dwi, bvals, bvecs, grad, mask] = SeriesFiles{};
  }
  EXPECT_TRUE(write_file_atomically(folder / "other", "another content", {}));
  std::filesystem::path SeriesFiles::*const parts[] = {&SeriesFiles::dwi, &SeriesFiles::bvals, &SeriesFiles::bvecs,
                                                       &SeriesFiles::grad, &SeriesFiles::mask};
  for (std::size_t i = 0; i < std::size(parts); ++i) {
    SeriesFieldFiles other = files;
    other.series.*parts[i] = folder / "other";
    expect_another(key_of(other, plain, "build"), "file " + std::to_string(i));
  }
  SeriesFieldFiles no_mask = files;
  no_mask.series.mask.clear();
  expect_another(key_of(no_mask, plain, "build"), "no mask");
  SeriesFieldFiles with_stop = files, with_response = files;
  with_stop.stop_map = folder / "other";
  with_response.response = folder / "other";
  expect_another(key_of(with_stop, plain, "build"), "stop_map");
  expect_another(key_of(with_response, plain, "build"), "response");
}

TEST(file_field, an_image_in_memory_gives_the_field_of_its_file) {
  const TemporaryFolder folder;
  Image image;
  image.geometry = make_arrays().head.geometry;
  image.volumes = 6;
  const auto voxels = static_cast<std::size_t>(image.geometry.voxel_count());
  for (std::size_t i = 0; i < 6 * voxels; ++i) image.values.push_back(i < 3 * voxels ? 1e-3f : 1e-4f);
  const FieldFileRequest request = {.kind = FieldFileKind::tensor, .path = folder / "tensor.nii.gz"};
  ASSERT_TRUE(write_image(request.path, image.geometry, 6, image.values));
  const auto pool = ThreadPool::create(1);
  const auto read = read_field_file(request);
  const auto taken = take_field_image(image, request);
  ASSERT_TRUE(read && taken);
  std::vector<std::uint8_t> mask(voxels, 1);
  mask[3] = 0;
  const auto a = make_file_tracking_data(*read, mask, {}, named_sphere("small").value(), **pool);
  const auto b = make_file_tracking_data(*taken, mask, {}, named_sphere("small").value(), **pool);
  ASSERT_TRUE(a && b);
  expect_equal(*a, *b);
  EXPECT_EQ(a->stop_map[3], 0.0f);
  EXPECT_GT(a->stop_map[4], 0.0f);
}

// Diffusivities 3, 1 and 1 turned within the plane of x and y: xx 2, yy 2, zz 1, xy 1 in every order of the file.
TEST(file_field, the_stopping_map_of_tensors_is_their_anisotropy_in_every_order) {
  const double expected = std::sqrt(1.5 * (16.0 + 4 + 4) / 9 / 11);  // deviations 4/3, -2/3, -2/3 of 3, 1, 1
  struct Order {
    const char* name;
    std::array<float, 6> tensor;
  };
  for (const Order& order :
       {Order{"mrtrix", {2, 2, 1, 1, 0, 0}}, Order{"fsl", {2, 1, 0, 2, 0, 1}}, Order{"dipy", {2, 1, 2, 0, 0, 1}}}) {
    Image image;
    image.geometry.size = {2, 1, 1};
    image.volumes = 6;
    for (const float value : order.tensor) {
      image.values.push_back(0);  // no tensor
      image.values.push_back(value);
    }
    const auto file = take_field_image(
        image, {.kind = FieldFileKind::tensor, .path = "tensor.nii", .tensor_order = std::string(order.name)});
    ASSERT_TRUE(file) << file.error().message();
    const auto map = default_stop_map(*file);
    ASSERT_TRUE(map) << map.error().message();
    ASSERT_EQ(map->size(), 2U);
    EXPECT_EQ((*map)[0], 0.0f) << order.name;
    EXPECT_NEAR(static_cast<double>((*map)[1]), expected, 1e-6) << order.name;
  }
}

// Amplitudes are tracked in image axes: those in world axes are taken where both are the same.
TEST(file_field, amplitudes_in_world_axes_need_an_image_along_them) {
  const Sphere sphere = named_sphere("small").value();
  const auto pool = ThreadPool::create(1);
  Image image;
  image.geometry.size = {2, 1, 1};
  image.volumes = static_cast<std::int64_t>(sphere.size());
  image.values.assign(2 * sphere.size(), 1.0f);
  const auto field_of = [&](const char* frame, const std::array<double, 12>& voxel_to_world) {
    image.geometry.voxel_to_world = {voxel_to_world};
    const auto file =
        take_field_image(image, {.kind = FieldFileKind::amplitudes, .path = "sf.nii", .frame = std::string(frame)});
    EXPECT_TRUE(file);
    return make_file_field(*file, default_stop_map(*file).value(), {}, sphere, **pool);
  };
  // Voxels of 2 x 3 x 4 mm, as they are, mirrored in x, and with y and z exchanged.
  EXPECT_TRUE(field_of("world", {2, 0, 0, -90, 0, 3, 0, -126, 0, 0, 4, -72}));
  for (const std::array<double, 12>& other : {std::array<double, 12>{-2, 0, 0, 90, 0, 3, 0, -126, 0, 0, 4, -72},
                                              {2, 0, 0, -90, 0, 0, 4, -126, 0, 3, 0, -72}}) {
    const auto refused = field_of("world", other);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message().find("its directions are in world axes"), std::string::npos);
    EXPECT_TRUE(field_of("image", other));
  }
}

// Amplitudes by dipy.reconst.shm.sh_to_sf 1.12 (sh_order_max=3, full_basis=True; descoteaux07-legacy is legacy=True,
// the others legacy=False) of the coefficients 2, then ((7 i) mod 11 - 5) / 8 for i = 1 to 15.
TEST(file_field, harmonics_of_all_degrees_are_sampled_on_the_whole_sphere_as_dipy_does) {
  const Sphere sphere = make_sphere("eight",
                                    {{0, 0, 1},
                                     {0, 0, -1},
                                     {0.6, 0, 0.8},
                                     {-0.6, 0, -0.8},
                                     {0.36, 0.48, -0.8},
                                     {-0.36, -0.48, 0.8},
                                     {0, -1, 0},
                                     {-0.8, 0.6, 0}},
                                    true)
                            .value();
  struct Case {
    const char* basis;
    std::array<double, 8> amplitudes;
  };
  const Case cases[] = {
      {"tournier07",
       {0.944018687, 0.81514361, 0.739969921, 0.481910769, 1.03032631, 0.175821685, 0.866168815, 0.122423151}},
      {"descoteaux07",
       {0.944018687, 0.81514361, 0.146389994, 0.927996658, 0.285935007, 1.16603638, 0.684092095, 0.118649462}},
      {"descoteaux07-legacy",
       {0.944018687, 0.81514361, 1.05166518, 0.809356339, 0.503940925, 0.476049542, 0.684092095, 0.615364758}}};
  const auto pool = ThreadPool::create(1);
  for (const auto& [basis, amplitudes] : cases) {
    Image image;
    image.geometry.size = {2, 1, 1};
    image.volumes = 16;
    for (int i = 0; i < 16; ++i) {
      image.values.push_back(0);  // nothing in the first voxel
      image.values.push_back(i == 0 ? 2.0f : static_cast<float>(7 * i % 11 - 5) / 8.0f);
    }
    const auto file =
        take_field_image(image, {.kind = FieldFileKind::harmonics, .path = "fod.nii", .basis = std::string(basis)});
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_TRUE(file->full_basis);
    EXPECT_EQ(file->degree, 3);
    EXPECT_EQ(file->frame, "image");
    const auto data = make_file_tracking_data(*file, {}, {1, 1}, sphere, **pool);
    ASSERT_TRUE(data) << data.error().message();
    const Field& field = data->prepared.field;
    EXPECT_EQ(field.kind, FieldKind::amplitudes);
    EXPECT_EQ(data->prepared.facts["full_basis"], true);
    const std::size_t record = field.record_of_voxel[1];
    for (std::size_t d = 0; d < 8; ++d) {
      EXPECT_NEAR(static_cast<double>(field.records[record * field.stride + d]), amplitudes[d], 1e-6) << basis << d;
    }
    // Half a sphere cannot hold it.
    EXPECT_FALSE(make_file_tracking_data(*file, {}, {1, 1}, named_sphere("small").value(), **pool));
  }
}

TEST(file_field, the_number_of_volumes_tells_even_from_full_bases) {
  struct Count {
    std::int64_t volumes;
    int degree;  // -1: refused
    bool full;
  };
  for (const Count& count :
       {Count{1, 0, false}, Count{4, 1, true}, Count{6, 2, false}, Count{9, 2, true}, Count{15, 4, false},
        Count{16, 3, true}, Count{45, 8, false}, Count{49, 6, true}, Count{81, 8, true}, Count{91, 12, false},
        Count{169, 12, true}, Count{2, -1, false}, Count{44, -1, false}, Count{196, -1, false}}) {
    Image image;
    image.geometry.size = {1, 1, 1};
    image.volumes = count.volumes;
    image.values.assign(static_cast<std::size_t>(count.volumes), 1.0f);
    const auto file = take_field_image(image, {.kind = FieldFileKind::harmonics, .path = "sh.nii"});
    ASSERT_EQ(file.has_value(), count.degree >= 0) << count.volumes;
    if (!file) continue;
    EXPECT_EQ(file->degree, count.degree) << count.volumes;
    EXPECT_EQ(file->full_basis, count.full) << count.volumes;
    // MRtrix3 writes even degrees, in world axes; whoever writes odd ones has DIPY's default.
    EXPECT_EQ(file->basis, count.full ? "descoteaux07-legacy" : "tournier07");
    EXPECT_EQ(file->frame, count.full ? "image" : "world");
  }
}

}  // namespace
}  // namespace cingulum
