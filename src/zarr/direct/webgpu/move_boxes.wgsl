// Mirrors src/zarr/direct/box_item.hpp: boxes of elements between chunks and a region. Numbers of 64 bits are read by
// their low words. Bytes of the target that no box names keep their value: parts of a word are set by an `and` and an
// `or`, each of which touches its own bits alone, so that neighbours may be set at the same time.

struct MoveScalars {
  first_record_word: u32,  // of the launch, in `records`
  record_count: u32,
  block_count: u32,
  gathers: u32,
  place_begin: u32,  // low word of where the bound part of the region's buffer begins
}

@group(0) @binding(0) var<storage, read> records: array<u32>;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_words: array<atomic<u32>>;
@group(0) @binding(3) var<uniform> scalars: MoveScalars;

// Words of a record, in the order of the struct.
const word_rank = 0u;
const word_unit_bytes = 1u;
const word_element_bytes = 2u;
const word_swapped_bytes = 3u;
const word_shuffled = 4u;
const word_is_fill = 5u;
const word_first_block = 6u;
const word_items = 7u;
const word_extent = 8u;
const word_fill = 16u;
const word_chunk_elements = 20u;
const word_chunk_at = 22u;
const word_chunk_offset = 24u;
const word_place_offset = 26u;
const word_chunk_stride = 28u;
const word_place_stride = 44u;

fn source_byte(at: u32) -> u32 {
  return (source[at >> 2u] >> ((at & 3u) * 8u)) & 0xffu;
}

fn set_byte(at: u32, value: u32) {
  let shift = (at & 3u) * 8u;
  atomicAnd(&target_words[at >> 2u], ~(0xffu << shift));
  atomicOr(&target_words[at >> 2u], value << shift);
}

fn swapped_word(word: u32, swapped_bytes: u32) -> u32 {
  let pairs = ((word & 0x00ff00ffu) << 8u) | ((word >> 8u) & 0x00ff00ffu);
  return select((pairs << 16u) | (pairs >> 16u), pairs, swapped_bytes == 2u);
}

// The first word of the record that moves items of `block`.
fn box_of_block(block: u32) -> u32 {
  var low = 0u;
  var count = scalars.record_count;
  while (count > 1u) {
    let half = count / 2u;
    let middle = scalars.first_record_word + (low + half) * box_record_words;
    if (records[middle + word_first_block] <= block) {
      low += half;
      count -= half;
    } else {
      count = half;
    }
  }
  return scalars.first_record_word + low * box_record_words;
}

fn move_units(box: u32, chunk: u32, place: u32) {
  let unit_words = records[box + word_unit_bytes] / 4u;
  let swapped_bytes = records[box + word_swapped_bytes];
  let from_word = select(chunk, place, scalars.gathers != 0u) / 4u;
  let to_word = select(place, chunk, scalars.gathers != 0u) / 4u;
  for (var w = 0u; w < unit_words; w++) {
    if (records[box + word_is_fill] != 0u) {
      atomicStore(&target_words[to_word + w], records[box + word_fill + w]);
      continue;
    }
    var word = source[from_word + select(w, w ^ 1u, swapped_bytes == 8u)];
    if (swapped_bytes > 1u) {
      word = swapped_word(word, swapped_bytes);
    }
    atomicStore(&target_words[to_word + w], word);
  }
}

fn move_element(box: u32, element: u32, place: u32) {
  let element_bytes = records[box + word_element_bytes];
  for (var b = 0u; b < element_bytes; b++) {
    if (records[box + word_is_fill] != 0u) {
      set_byte(place + b, (records[box + word_fill + b / 4u] >> ((b & 3u) * 8u)) & 0xffu);
      continue;
    }
    let stored = b ^ (records[box + word_swapped_bytes] - 1u);
    var chunk = records[box + word_chunk_at];
    if (records[box + word_shuffled] != 0u) {
      chunk += stored * records[box + word_chunk_elements] + element;
    } else {
      chunk += element * element_bytes + stored;
    }
    if (scalars.gathers != 0u) {
      set_byte(chunk, source_byte(place + b));
    } else {
      set_byte(place + b, source_byte(chunk));
    }
  }
}

@compute @workgroup_size(256)
fn move_boxes(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
              @builtin(local_invocation_index) thread: u32) {
  let block = group.y * groups.x + group.x;
  if (block >= scalars.block_count) {
    return;
  }
  let box = box_of_block(block);
  let with_units = records[box + word_unit_bytes] != 0u;
  let first = (block - records[box + word_first_block]) * box_items_per_block;
  let end = min(first + box_items_per_block, records[box + word_items]);
  for (var item = first + thread; item < end; item += box_block_threads) {
    var chunk = records[box + select(word_chunk_offset, word_chunk_at, with_units)];
    var place = records[box + word_place_offset] - scalars.place_begin;
    var rest = item;
    for (var d = records[box + word_rank]; d > 0u; d--) {
      let extent = records[box + word_extent + d - 1u];
      let index = rest % extent;
      rest = rest / extent;
      chunk += index * records[box + word_chunk_stride + 2u * (d - 1u)];
      place += index * records[box + word_place_stride + 2u * (d - 1u)];
    }
    if (with_units) {
      move_units(box, chunk, place);
    } else {
      move_element(box, chunk, place);
    }
  }
}
