// Mirrors src/tract/kernel/track.hpp: the life of a streamline. A workgroup takes seed after seed from a common counter and
// tracks all directions and halves of each. A dispatch has a budget of getter calls per workgroup, so that it ends soon;
// what a workgroup was doing then lies in its state and goes on in the next dispatch.

// Lane i has word i of the state.
fn load_state(at: u32) -> Streamline {
  let own = at + 32u + 3u * lane_index;
  initial_direction = vec3_of_words(work.words[own], work.words[own + 1u], work.words[own + 2u]);
  return line_of_words(lanes_all(work.words[at + lane_index]));
}

fn track_seeds(workgroup: u32) {
  let state_at = state_words * workgroup;
  var line = load_state(state_at);
  var page = Page(no_page, 0u, 0u);
  var budget = plan.budget;
  while (budget > 0u) {
    if (line.phase == phase_free) {
      let taken = take_number(0u);
      if (taken >= plan.seed_count) {
        break;
      }
      let w = lanes_all(work.words[plan.at_seeds + 8u * taken + (lane_index & 7u)]);
      line.phase = phase_at_seed;
      line.seed = w[3];
      line.seed_position = vec3_of_words(w[0], w[1], w[2]);
      line.position = line.seed_position;
      initial_direction = vec3_of_words(w[4], w[5], w[6]);
    }
    if (line.phase == phase_starts_half) {
      let along = vec3<f32>(lanes_get(initial_direction.x, line.direction),
                            lanes_get(initial_direction.y, line.direction),
                            lanes_get(initial_direction.z, line.direction));
      line.frame.tangent = select(along, -along, line.half != 0u);
      line.position = line.seed_position;
      line.steps = 0u;
      line.points = 0u;
      line.frame = begin_half(Ask(false, plan.first_seed + line.seed, line.direction, line.half, 0u, line.position,
                                  line.frame));
      line.phase = phase_at_start;
    }
    // Beyond the brick of the field that is there: the host brings another before a later dispatch.
    if (line.position.z < plan.brick_low || line.position.z >= plan.brick_high) {
      count_one(5u);
      break;
    }
    if (line.phase >= phase_at_start && (page.page == no_page || page.count == points_per_page)) {
      if (page.page != no_page) {
        close_page(page, line, 0u, end_none);
      }
      page = Page(take_number(1u), line.points, 0u);
      if (page.page >= plan.page_capacity) {
        page.page = no_page;
        break;
      }
    }

    // Where the streamline stands now.
    var reason = end_none;
    var corners: Corners;
    if (is_outside(line.position, grid_size())) {
      reason = end_outside_image;
    } else {
      corners = corners_at(line.position);
      if (!(pin(read_point(&corners)) > plan.stop_threshold)) {
        reason = end_stop_map;
      }
    }
    if (line.phase == phase_at_seed && reason != end_none) {
      count_one(2u);
      line.phase = phase_free;
      continue;
    }
    if (line.phase == phase_at_seed && plan.given_directions != 0u) {
      line.count = 1u;
      line.direction = 0u;
      line.half = select(1u, 0u, plan.one_sided != 0u);
      line.phase = phase_starts_half;
      continue;
    }
    if (line.phase == phase_moved && reason == end_none && line.steps % plan.substeps == 0u) {
      if (lane_index < 3u) {
        pages[plan.at_points + 96u * page.page + 3u * page.count + lane_index] = bitcast<u32>(line.position[lane_index]);
      }
      page.count += 1u;
      line.points += 1u;
      if (line.points == plan.max_steps) {
        reason = end_max_length;
      }
    }
    // The seed of a half was found good.
    let ends = line.phase == phase_moved && reason != end_none;
    if (!ends) {
      budget -= 1u;
      let initial = line.phase == phase_at_seed;
      let next = answer(Ask(initial, plan.first_seed + line.seed, line.direction, line.half, line.steps, line.position,
                            line.frame),
                        &corners);
      if (initial) {
        line.count = next.count;
        line.direction = 0u;
        line.half = select(1u, 0u, plan.one_sided != 0u);
        line.phase = phase_starts_half;
        if (next.count == 0u) {
          count_one(3u);
          line.phase = phase_free;
        }
        continue;
      }
      line.steps += 1u;
      if (next.count != 0u) {
        line.position = next.position;
        line.frame = next.frame;
        line.phase = phase_moved;
        continue;
      }
      reason = end_no_direction;
    }
    close_page(page, line, 1u, reason);
    page.page = no_page;
    if (line.half == 1u) {
      line.half = 0u;
      line.phase = phase_starts_half;
    } else {
      line.half = select(1u, 0u, plan.one_sided != 0u);
      line.direction += 1u;
      line.phase = select(phase_free, phase_starts_half, line.direction < line.count);
    }
  }
  if (page.page != no_page) {
    close_page(page, line, 0u, end_none);
  }
  save_vec3(state_at + 32u + 3u * lane_index, initial_direction);
  save_line(state_at, line);
}
