// Mirrors begin_half of src/tract/kernel/walk.hpp: getters that carry no frame.

fn begin_half(ask: Ask) -> Frame {
  return ask.frame;
}

// ptt alone has a bound.
fn bound_carried_on() -> f32 {
  return 0.0;
}
