#include "tract/run/driven_tracking.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "base/quantity.hpp"
#include "numerics/lanes_portable.hpp"
#include "tract/paged/device_tables.hpp"
#include "tract/seeds/seed_order.hpp"
#include "tract/webgpu/page_store.hpp"
#include "tract/webgpu/shader_form.hpp"
#include "tract/webgpu/streamline_words.hpp"
#include "tract/webgpu/webgpu_shader.hpp"

namespace cingulum {
namespace {

constexpr std::uint32_t bindings_beside_field = 3;  // tables, work, pages

// A browser gives up a GPU whose dispatches take long, and shows nothing else meanwhile. A software adapter begins far
// below that.
constexpr double shortest_seconds = 0.03;
constexpr double longest_seconds = 0.12;
constexpr std::uint32_t software_first_budget = 8;
constexpr std::uint32_t first_budget = 64;
constexpr std::uint32_t largest_budget = 4096;

constexpr std::uint32_t bytes_of_words(std::uint64_t words) {
  return static_cast<std::uint32_t>(words * sizeof(std::uint32_t));
}

class DrivenDispatches final : public DrivenTracking {
 public:
  DrivenDispatches(const Field& field, const DrivenAdapter& adapter, FieldPieces pieces)
      : field_(field),
        adapter_(adapter),
        pieces_(pieces),
        workgroups_(adapter.software ? 64 : 1024),
        pages_(adapter.software ? 1u << 13 : 1u << 16) {
    const std::uint64_t before_seeds = work_counter_words + std::uint64_t{workgroups_} * state_words;
    layout_.pieces = pieces.count;
    layout_.piece_bytes =
        static_cast<std::uint32_t>(std::uint64_t{pieces.records_per_piece} * field.stride * field.number_bytes());
    layout_.work_bytes = bytes_of_words(before_seeds + most_seeds_of_range * seed_words);
    layout_.pages_bytes = bytes_of_words(std::uint64_t{pages_} * (entry_words + page_words));
    layout_.seeds_at = bytes_of_words(before_seeds);
    layout_.points_at = bytes_of_words(std::uint64_t{pages_} * entry_words);
    layout_.counter_bytes = bytes_of_words(work_counter_words);
    layout_.dispatch_counters_at = bytes_of_words(static_cast<std::uint32_t>(WorkCounter::unfinished));
    layout_.dispatch_counter_bytes = bytes_of_words(counters_of_dispatch);
    layout_.pages_counter_at = bytes_of_words(static_cast<std::uint32_t>(WorkCounter::pages));
    layout_.entry_bytes = bytes_of_words(entry_words);
    layout_.page_bytes = bytes_of_words(page_words);
  }

  [[nodiscard]] const DrivenLayout& layout() const override { return layout_; }

  [[nodiscard]] Status use(const TrackingPlan& plan) override {
    auto found = of_getters_.find(plan.getter);
    if (found == of_getters_.end()) {
      CGL_TRY_ASSIGN(DeviceTables made, make_device_tables(plan, field_));
      const std::uint32_t budget = adapter_.software ? software_first_budget : first_budget;
      found = of_getters_.emplace(plan.getter, OfGetter{std::move(made), budget}).first;
    }
    getter_ = &found->second;
    tables_ = &getter_->tables;
    tables_->input.plan = plan;
    DeviceCapabilities can;
    can.software = adapter_.software;
    const ShaderForm form = choose_shader_form(tables_->input, {}, can,
                                               {.field_pieces = pieces_.count,
                                                .largest_binding_bytes = adapter_.largest_binding_bytes,
                                                .probe_tables_there = false});
    text_ = make_tracking_shader(tables_->input, plan_numbers(*tables_, pieces_, {}), pieces_, form).text;
    return {};
  }

  [[nodiscard]] std::vector<std::uint32_t> tables() const override {
    std::vector<std::uint32_t> words = tables_->words;
    words.insert(words.end(), field_.record_of_voxel.begin(), field_.record_of_voxel.end());
    return words;
  }
  [[nodiscard]] const std::string& text() const override { return text_; }

  [[nodiscard]] Result<std::span<const std::byte>> begin(SeedRange range, const Seeds& seeds) override {
    CGL_TRY(check_seed_range(range, &seeds));
    if (range.count > most_seeds_of_range) {
      return fail(ErrorKind::invalid_argument, "{} seeds in a range, at most {} are tracked together", range.count,
                  most_seeds_of_range);
    }
    range_ = range;
    positions_.resize(static_cast<std::size_t>(range.count));
    seeds.fill(range.first, positions_);
    const std::vector<std::uint32_t> order = order_in_space(positions_);
    seed_words_.assign(order.size(), {});
    for (std::size_t i = 0; i < order.size(); ++i) {
      seed_words_[i].position = positions_[order[i]];
      seed_words_[i].number = order[i];
    }
    blocks_.clear();
    counts_ = {};
    finished_ = range.count == 0;
    return std::as_bytes(std::span(seed_words_));
  }

  [[nodiscard]] std::uint32_t launch_workgroups() const override {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(workgroups_, range_.count));
  }

  [[nodiscard]] std::vector<std::uint32_t> launch_words() const override {
    LaunchNumbers launch;
    launch.seed_count = static_cast<std::uint32_t>(range_.count);
    launch.first_seed = static_cast<std::uint32_t>(range_.first);
    launch.budget = getter_->budget;
    launch.page_capacity = pages_;
    launch.at_seeds = workgroups_ * state_words;
    std::vector<std::uint32_t> words;
    for (const PlanNumber& number : plan_numbers(*tables_, pieces_, launch)) {
      words.push_back(std::holds_alternative<float>(number.value)
                          ? std::bit_cast<std::uint32_t>(std::get<float>(number.value))
                          : std::get<std::uint32_t>(number.value));
    }
    constexpr std::size_t block_words = 4;  // a uniform block is made of vectors
    words.resize((words.size() + block_words - 1) / block_words * block_words);
    return words;
  }

  [[nodiscard]] std::uint32_t after_dispatch(std::span<const std::uint32_t> counters, double seconds) override {
    const auto counted = [&](WorkCounter counter) { return counters[static_cast<std::size_t>(counter)]; };
    if (seconds < shortest_seconds) getter_->budget = std::min(2 * getter_->budget, largest_budget);
    if (seconds > longest_seconds) getter_->budget = std::max(getter_->budget / 2, 1u);
    finished_ = counted(WorkCounter::next_seed) >= range_.count && counted(WorkCounter::unfinished) == 0;
    counts_ = {.outside = counted(WorkCounter::seeds_outside),
               .without_direction = counted(WorkCounter::seeds_without_direction)};
    const std::uint32_t used = std::min(counted(WorkCounter::pages), pages_);
    return finished_ || used > pages_ / 2 ? used : 0;
  }

  void take_pages(std::span<const std::byte> entries, std::span<const std::byte> points) override {
    PageBlock& block = blocks_.emplace_back();
    block.reallocate(entries.size() / sizeof(PageEntryWords));
    std::memcpy(block.entries.data(), entries.data(), block.pages * sizeof(PageEntryWords));
    std::memcpy(block.points.data(), points.data(), std::min(points.size(), block.points.size() * sizeof(float)));
  }

  [[nodiscard]] bool finished() const override { return finished_; }

  [[nodiscard]] Status assemble(StreamlineBatch& batch) override {
    return assemble_pages(blocks_, range_, positions_, counts_, batch);
  }

 private:
  struct OfGetter {
    DeviceTables tables;
    std::uint32_t budget = 0;  // getter calls of a workgroup in a dispatch, as the last ones suggest
  };

  const Field& field_;
  const DrivenAdapter adapter_;
  const FieldPieces pieces_;
  const std::uint32_t workgroups_;
  const std::uint32_t pages_;
  DrivenLayout layout_;
  std::map<std::uint32_t, OfGetter> of_getters_;
  OfGetter* getter_ = nullptr;
  DeviceTables* tables_ = nullptr;
  std::string text_;
  SeedRange range_;
  std::vector<numerics::Vec3> positions_;
  std::vector<SeedWords> seed_words_;
  std::vector<PageBlock> blocks_;
  SeedCounts counts_;
  bool finished_ = false;
};

}  // namespace

Result<std::unique_ptr<DrivenTracking>> make_driven_tracking(const Field& field, const DrivenAdapter& adapter) {
  const std::uint64_t record_bytes = std::uint64_t{field.stride} * field.number_bytes();
  const std::uint64_t records_of_binding = adapter.largest_binding_bytes / record_bytes;
  const std::uint32_t most_pieces =
      adapter.storage_bindings > bindings_beside_field ? adapter.storage_bindings - bindings_beside_field : 0;
  FieldPieces pieces;
  pieces.records_per_piece =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(records_of_binding, field.record_count()));
  if (pieces.records_per_piece == 0 ||
      (field.record_count() + pieces.records_per_piece - 1) / pieces.records_per_piece > most_pieces) {
    return fail(ErrorKind::unavailable,
                "the field needs {}; {} storage bindings of {} leave {} for it (maxStorageBuffersPerShaderStage, "
                "maxStorageBufferBindingSize); use {} half, {} for fewer voxels, a smaller sphere, or {} instead of {}",
                format_bytes(record_bytes * field.record_count()), adapter.storage_bindings,
                format_bytes(adapter.largest_binding_bytes),
                format_bytes(most_pieces * records_of_binding * record_bytes), argument_name("field_precision"),
                argument_name("mask"), argument_name("sh"), argument_name("sf"));
  }
  pieces.count =
      static_cast<std::uint32_t>((field.record_count() + pieces.records_per_piece - 1) / pieces.records_per_piece);
  if (field.record_of_voxel.size() * sizeof(std::uint32_t) > adapter.largest_binding_bytes / 2) {
    return fail(ErrorKind::unavailable,
                "an image of {} voxels is beyond half of a binding of {} (maxStorageBufferBindingSize); crop it",
                field.record_of_voxel.size(), format_bytes(adapter.largest_binding_bytes));
  }
  TrackingInput counts{};
  counts.field.kind = static_cast<std::uint32_t>(field.kind);
  counts.field.channels = field.channels;
  const bool series = field.kind == FieldKind::harmonics || field.kind == FieldKind::bootstrap;
  const bool mirror = series && field.sphere.mirror_symmetric;
  counts.sphere.rows =
      numerics::row_count(static_cast<std::uint32_t>(mirror ? field.sphere.slots.size() : field.sphere.size()));
  counts.bootstrap.rows = numerics::row_count(field.bootstrap.gradients);
  const std::uint64_t need = tracking_workgroup_bytes(counts, true);
  constexpr std::uint32_t most_rows = 64;  // find_peaks.wgsl keeps a bit per row in two words
  if (need > adapter.workgroup_bytes || counts.sphere.rows > most_rows) {
    return fail(ErrorKind::unavailable,
                "{} directions (at most {}) and records of {} numbers need {} of workgroup memory, there are {} "
                "(maxComputeWorkgroupStorageSize); use a smaller sphere or fewer gradients",
                field.sphere.size(), numerics::lane_count * most_rows, field.channels, format_bytes(need),
                format_bytes(adapter.workgroup_bytes));
  }
  return std::make_unique<DrivenDispatches>(field, adapter, pieces);
}

}  // namespace cingulum
