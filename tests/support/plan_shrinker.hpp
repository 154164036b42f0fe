// Makes a recipe of random_plan.hpp that fails small, and describes it as a list: seeds, pieces, regions, options, the
// image, ties, the sphere and the degree go back to their defaults one after the other, as long as what failed still
// fails. Called by the tests of backends on a plan whose streamlines are not the CPU's.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "support/random_plan.hpp"

namespace cingulum::test {

// Every option of a plan by its name. `getter` says what a plan is about and stays.
template <class Visit>
void for_each_option(Visit&& visit) {
  using Options = TrackingOptions;
  // There are as many names as members: an option that is added does not compile until it is listed below, too.
  [[maybe_unused]] const auto all = [](const Options& options) {
    [[maybe_unused]] const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, bb,
                                  cc, dd, ee, ff, gg] = options;
  };
  visit("step_mm", &Options::step_mm);
  visit("max_angle_deg", &Options::max_angle_deg);
  visit("min_length_mm", &Options::min_length_mm);
  visit("max_length_mm", &Options::max_length_mm);
  visit("stop_threshold", &Options::stop_threshold);
  visit("stop_rule", &Options::stop_rule);
  visit("relative_threshold", &Options::relative_threshold);
  visit("absolute_threshold", &Options::absolute_threshold);
  visit("relative_peak_threshold", &Options::relative_peak_threshold);
  visit("min_separation_deg", &Options::min_separation_deg);
  visit("max_directions", &Options::max_directions);
  visit("draw_start", &Options::draw_start);
  visit("angular_weight", &Options::angular_weight);
  visit("one_sided", &Options::one_sided);
  visit("second_half", &Options::second_half);
  visit("refine", &Options::refine);
  visit("rk4", &Options::rk4);
  visit("boot_attempts", &Options::boot_attempts);
  visit("boot_retry", &Options::boot_retry);
  visit("boot_seed", &Options::boot_seed);
  visit("boot_min_signal", &Options::boot_min_signal);
  visit("ptt_probe_length_mm", &Options::ptt_probe_length_mm);
  visit("ptt_probe_radius_mm", &Options::ptt_probe_radius_mm);
  visit("ptt_probe_quality", &Options::ptt_probe_quality);
  visit("ptt_probe_count", &Options::ptt_probe_count);
  visit("ptt_exponent", &Options::ptt_exponent);
  visit("ptt_min_radius_mm", &Options::ptt_min_radius_mm);
  visit("ptt_weak_links", &Options::ptt_weak_links);
  visit("ptt_tries", &Options::ptt_tries);
  visit("ptt_bound_interval", &Options::ptt_bound_interval);
  visit("ptt_substeps", &Options::ptt_substeps);
  visit("random_key", &Options::random_key);
}

// What of the recipe is not at its default, a line each.
inline std::string described(const PlanRecipe& recipe) {
  const PlanRecipe plain;
  std::string text = fmt::format("plan {}: {}\n", recipe.number, PlanBuilder(recipe).name());
  const auto add = [&](std::string_view name, const auto& value, const auto& otherwise) {
    if (value != otherwise) text += fmt::format("  {} = {}\n", name, value);
  };
  const auto join = [](const auto& list) { return fmt::format("{}", fmt::join(list, ", ")); };
  add("size", join(recipe.size), join(plain.size));
  add("edges_mm", join(recipe.edges_mm), join(plain.edges_mm));
  add("phase", join(recipe.phase), join(plain.phase));
  add("peaks", recipe.peaks, plain.peaks);
  add("is_lopsided", recipe.is_lopsided, plain.is_lopsided);
  add("has_gaps", recipe.has_gaps, plain.has_gaps);
  add("noise", recipe.noise, plain.noise);
  add("stop", static_cast<int>(recipe.stop), static_cast<int>(plain.stop));
  add("tie_vertices", join(recipe.tie_vertices), join(plain.tie_vertices));
  const auto vector = [](const auto& v) { return fmt::format("({}, {}, {})", v.x, v.y, v.z); };
  add("tie_peak", vector(recipe.tie_peak), vector(plain.tie_peak));
  for_each_option([&](std::string_view name, auto member) {
    const auto value = recipe.options.*member, otherwise = plain.options.*member;
    if constexpr (std::is_enum_v<std::decay_t<decltype(value)>>) {
      add(fmt::format("options.{}", name), static_cast<int>(value), static_cast<int>(otherwise));
    } else {
      add(fmt::format("options.{}", name), value, otherwise);
    }
  });
  for (std::size_t i = 0; i < recipe.seeds.size(); ++i) {
    text += fmt::format("  seed {}", vector(recipe.seeds[i]));
    if (!recipe.directions.empty()) text += fmt::format(" along {}", vector(recipe.directions[i]));
    text += "\n";
  }
  if (recipe.pieces.size() > 1) text += fmt::format("  pieces = {}\n", join(recipe.pieces));
  constexpr const char* rules[] = {"include", "include_ordered", "exclude", "stop"};
  for (const PlanRegion& region : recipe.regions) {
    text += fmt::format("  {} {} of radius {} about {}\n", rules[static_cast<std::size_t>(region.rule)],
                        region.is_mask ? "voxels" : "a sphere", region.radius, vector(region.centre));
  }
  if (recipe.chunk > 0) text += fmt::format("  a run shared in chunks of {}\n", recipe.chunk);
  return text;
}

class PlanShrinker {
 public:
  // `fails` says whether a recipe still shows what is sought; it is asked `most_questions` times at most.
  PlanShrinker(std::function<bool(const PlanRecipe&)> fails, std::size_t most_questions)
      : fails_(std::move(fails)), questions_left_(most_questions) {}

  // The smallest recipe found that still fails; `recipe` fails, too.
  PlanRecipe shrink(PlanRecipe recipe) {
    recipe_ = std::move(recipe);
    do {
      changed_ = false;
      drop_seeds();
      simplify_run();
      simplify_options();
      simplify_field();
    } while (changed_ && questions_left_ > 0);
    return recipe_;
  }

 private:
  template <class Change>
  bool attempt(Change&& change) {
    PlanRecipe smaller = recipe_;
    change(smaller);
    const PlanRecipe& before = recipe_;
    if (questions_left_ == 0 || described(smaller) == described(before)) return false;
    --questions_left_;
    if (!fails_(smaller)) return false;
    recipe_ = std::move(smaller);
    changed_ = true;
    return true;
  }
  template <class Member>
  bool reset(Member PlanRecipe::*member) {
    return attempt([&](PlanRecipe& r) { r.*member = PlanRecipe{}.*member; });
  }

  static void keep_seeds(PlanRecipe& r, std::size_t first, std::size_t count) {
    const auto keep = [&](auto& list) {
      if (list.empty()) return;
      list = {list.begin() + static_cast<std::ptrdiff_t>(first),
              list.begin() + static_cast<std::ptrdiff_t>(first + count)};
    };
    keep(r.seeds);
    keep(r.directions);
    r.pieces = {count};
  }
  // Half of them, a quarter, ... and then one by one.
  void drop_seeds() {
    while (recipe_.seeds.size() > 1) {
      const std::size_t count = recipe_.seeds.size(), half = count / 2;
      if (attempt([&](PlanRecipe& r) { keep_seeds(r, 0, half); })) continue;
      if (attempt([&](PlanRecipe& r) { keep_seeds(r, half, count - half); })) continue;
      break;
    }
    for (std::size_t i = recipe_.seeds.size(); recipe_.seeds.size() > 1 && i-- > 0;) {
      attempt([&](PlanRecipe& r) {
        const auto erase = [&](auto& list) {
          if (!list.empty()) list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
        };
        erase(r.seeds);
        erase(r.directions);
        r.pieces = {r.seeds.size()};
      });
    }
    attempt([](PlanRecipe& r) { r.pieces = {r.seeds.size()}; });
    reset(&PlanRecipe::directions);
  }

  void simplify_run() {
    attempt([](PlanRecipe& r) {
      r.regions.clear();
      r.chunk = 0;
    });
    reset(&PlanRecipe::chunk);
    for (std::size_t i = recipe_.regions.size(); i-- > 0;) {
      attempt([&](PlanRecipe& r) { r.regions.erase(r.regions.begin() + static_cast<std::ptrdiff_t>(i)); });
    }
  }

  void simplify_options() {
    // All at once where none matters.
    attempt([](PlanRecipe& r) { r.options = TrackingOptions{.getter = r.options.getter}; });
    for_each_option([&](std::string_view, auto member) {
      attempt([&](PlanRecipe& r) { r.options.*member = TrackingOptions{}.*member; });
    });
    // Several probes need a radius: both or none.
    attempt([](PlanRecipe& r) {
      r.options.ptt_probe_count = 1;
      r.options.ptt_probe_radius_mm = 0;
    });
    while (recipe_.options.max_length_mm > 1 &&
           attempt([](PlanRecipe& r) { r.options.max_length_mm = 0.5 * r.options.max_length_mm; })) {
    }
  }

  void simplify_field() {
    reset(&PlanRecipe::tie);
    reset(&PlanRecipe::tie_vertices);
    reset(&PlanRecipe::tie_peak);
    reset(&PlanRecipe::stop);
    reset(&PlanRecipe::noise);
    reset(&PlanRecipe::is_float16);
    reset(&PlanRecipe::is_lopsided);
    reset(&PlanRecipe::has_gaps);
    reset(&PlanRecipe::csa);
    reset(&PlanRecipe::peaks);
    reset(&PlanRecipe::phase);
    reset(&PlanRecipe::edges_mm);
    reset(&PlanRecipe::sphere);
    while (recipe_.degree > 2 && attempt([](PlanRecipe& r) { r.degree -= 2; })) {
    }
    // As many gradients as the degree needs.
    attempt([](PlanRecipe& r) {
      r.gradients = static_cast<std::size_t>(numerics::coefficient_count(r.degree, false)) + 2;
    });
    for (std::size_t axis = 0; axis < 3; ++axis) {
      while (recipe_.size[axis] > 1 && attempt([&](PlanRecipe& r) { r.size[axis] = (r.size[axis] + 1) / 2; })) {
      }
      while (recipe_.size[axis] > 1 && attempt([&](PlanRecipe& r) { --r.size[axis]; })) {
      }
    }
  }

  std::function<bool(const PlanRecipe&)> fails_;
  std::size_t questions_left_;
  PlanRecipe recipe_;
  bool changed_ = false;
};

// The recipe on the tracker and on the CPU; where they differ, the failure tells the smallest recipe on which they do.
// Points that were compared. A device on which every question takes long is asked fewer.
inline std::uint64_t expect_same_as_cpu(const MakeTracker& make, const PlanRecipe& recipe, ThreadPool& pool,
                                        std::size_t most_questions = 300) {
  const PlanComparison result = compare_with_cpu(make, recipe, pool);
  if (result.difference.empty()) return result.points;
  const auto difference = [&](const PlanRecipe& smaller) {
    // A recipe that cannot be planned any more is not a smaller failure.
    const auto plan = make_tracking_plan(smaller.options, PlanBuilder(smaller).geometry());
    return plan ? compare_with_cpu(make, smaller, pool).difference : std::string();
  };
  const PlanRecipe smallest =
      PlanShrinker([&](const PlanRecipe& smaller) { return !difference(smaller).empty(); }, most_questions)
          .shrink(recipe);
  ADD_FAILURE() << "plan " << recipe.number << ", " << PlanBuilder(recipe).name() << ": " << result.difference
                << "\nthe smallest plan that fails: " << difference(smallest) << "\n"
                << described(smallest);
  return result.points;
}

}  // namespace cingulum::test
