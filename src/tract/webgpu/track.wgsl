// Mirrors src/tract/kernel/walk.hpp: the life of a streamline. A workgroup takes seed after seed from a common counter and
// tracks all directions and halves of each. A dispatch has a budget of getter calls per workgroup, so that it ends soon;
// what a workgroup was doing then lies in its state and goes on in the next dispatch.

// Lane i has word i of the state.
fn load_state(at: u32) -> Streamline {
  let own = at + state_directions + 3u * lane_index;
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
      let taken = take_number(counter_next_seed);
      if (taken >= plan.seed_count) {
        break;
      }
      initial_direction = stand_at_seed(&line, taken);
    }
    if (line.phase == phase_starts_half) {
      start_half(&line, vec3<f32>(lanes_get(initial_direction.x, line.direction),
                                  lanes_get(initial_direction.y, line.direction),
                                  lanes_get(initial_direction.z, line.direction)));
    }
    // Beyond the brick of the field that is there: the host brings another before a later dispatch.
    if (line.position.z < plan.brick_low || line.position.z >= plan.brick_high) {
      count_one(counter_waiting_for_brick);
      break;
    }
    if (!has_page(&page, &line)) {
      break;
    }

    // Where the streamline stands now.
    var reason = end_none;
    var corners: Corners;
    if (is_outside(line.position, grid_size())) {
      reason = end_outside_image;
    } else {
      corners = corners_at(line.position);
      reason = reason_of_map(line.position, pin(read_point(&corners)));
    }
    if (line.phase == phase_at_seed && reason != end_none) {
      leave_bad_seed(&line);
      continue;
    }
    if (line.phase == phase_at_seed && plan.given_directions != 0u) {
      take_directions(&line, 1u);
      continue;
    }
    if (reason == end_none) {
      reason = keep_point(&page, &line);
    }
    if (reason == end_none) {
      budget -= 1u;
      let initial = line.phase == phase_at_seed;
      carried_bound = line.bound;
      let turning = line.phase == phase_turning;
      let next = answer(Ask(initial, plan.first_seed + line.seed, line.direction, select(line.half, 0u, turning),
                            line.steps, line.position, line.frame),
                        &corners);
      if (initial) {
        take_directions(&line, next.count);
        continue;
      }
      if (turning) {
        line.frame.tangent = -select(line.frame.tangent, next.frame.tangent, next.count != 0u);
        line.phase = phase_at_start;
        continue;
      }
      line.steps += 1u;
      if (next.count != 0u) {
        line.position = next.position;
        line.frame = next.frame;
        line.bound = bound_carried_on();
        line.phase = phase_moved;
        continue;
      }
      reason = end_no_direction;
    }
    end_half(&page, &line, reason);
  }
  leave_line(state_at, page, line);
  save_vec3(state_at + state_directions + 3u * lane_index, initial_direction);
}
