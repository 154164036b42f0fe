// Mirrors the indices of src/oct/kernel/line_index.hpp.

// Samples d c b a | a b c d | d c b a, for lines of any length.
fn reflected(index: i32, count: i32) -> i32 {
  var i = index;
  while (i < 0 || i >= count) {
    i = select(2 * count - 1 - i, -1 - i, i < 0);
  }
  return i;
}
