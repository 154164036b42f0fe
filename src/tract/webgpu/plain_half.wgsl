// Mirrors the start of track_half of src/tract/kernel/track.hpp: getters that carry no frame.

fn begin_half(ask: Ask) -> Frame {
  return ask.frame;
}
