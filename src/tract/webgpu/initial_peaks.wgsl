// Mirrors find_initial_directions of src/tract/kernel/track.hpp on spherical functions: the peaks, as the lanes' directions.

fn initial_peaks(ask: Ask) -> Answer {
  var peaks: Peaks;
  find_peaks(initial_limit(), &peaks);
  for (var i = 0u; i < peaks.count; i++) {
    keep_initial_direction(i, slot_direction(peaks.slot[i]));
  }
  return Answer(peaks.count, ask.position, ask.frame);
}
