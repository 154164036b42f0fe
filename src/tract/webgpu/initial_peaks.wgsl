// Mirrors find_initial_directions of src/tract/kernel/track.hpp on spherical functions: the peaks, as the lanes' directions.

fn initial_peaks(ask: Ask) -> Answer {
  let count = find_peaks(initial_limit());
  keep_initial_peaks(count);
  return Answer(count, ask.position, ask.frame);
}
