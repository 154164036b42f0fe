// Mirrors begin_half of src/tract/kernel/walk.hpp: getters that carry no frame.

fn begin_half(ask: Ask) -> Frame {
  return ask.frame;
}
