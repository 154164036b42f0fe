// Constrained spherical deconvolution of one voxel by a team of 32 lanes that share memory: a warp of CUDA, or, in
// tests, a loop over the lanes. What each number is the sum of, and in which order, is that of csd_kernel.hpp: a lane
// owns entries of the matrices, so every entry still is one sequential sum, and the bits are those of the CPU. Called
// by dmri/models/cuda/csd_kernels.cu. A Team has each(body(lane)) with a barrier behind it, ballots, and PerLane for
// what a lane keeps from one each() to the next.
//
// Matrices are lower triangles by columns in panels of four: column k holds the rows from 4 (k / 4) on. Lanes then read
// a column's rows side by side, and all lanes the same four rows of a panel at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dmri/models/csd_kernel.hpp"
#include "dmri/models/unroll.hpp"
#include "numerics/portable.hpp"

namespace cingulum {

inline constexpr int team_lanes = 32;
inline constexpr int panel_columns = 4;
// A gap behind each column: without it the columns of a row would lie in one bank of shared memory. Even, so that pairs
// of numbers stay aligned.
inline constexpr int panel_gap = 2;

CGL_HD constexpr int panel_height(int stride, int panel) {
  return stride - panel_columns * panel + panel_gap;
}
// Where panel `panel` of a matrix of `stride` rows begins: 4 sum over p < panel of (stride - 4 p + gap).
CGL_HD constexpr int panel_offset(int stride, int panel) {
  return panel_columns * (panel * (stride + panel_gap) - panel_columns * (panel * (panel - 1) / 2));
}
// Where row 0 of `column` would be; rows from 4 (column / 4) on are there.
CGL_HD constexpr int panel_column(int stride, int column) {
  const int panel = column / panel_columns;
  return panel_offset(stride, panel) + (column % panel_columns) * panel_height(stride, panel) - panel_columns * panel;
}
CGL_HD constexpr int panel_numbers(int stride) {
  return panel_offset(stride, stride / panel_columns);
}

// A padded triangle of the model (csd_kernel.hpp) in panels; host only.
inline std::vector<double> in_panels(const CsdView& view, const double* triangle) {
  std::vector<double> panels(static_cast<std::size_t>(panel_numbers(view.stride)), 0.0);
  for (int row = 0; row < view.count; ++row) {
    for (int column = 0; column <= row; ++column) {
      panels[static_cast<std::size_t>(panel_column(view.stride, column) + row)] =
          triangle[padded_row_offset(row) + column];
    }
  }
  return panels;
}

struct CsdTeamView {
  CsdView model;           // of it: sizes, threshold, projection, start, amplitudes, constraint
  const double* gram;      // X'X, in panels
  const double* gram_all;  // X'X + sum over all directions of h h', in panels
};

// A tile of the Gram matrix that a lane changes: four rows and three panels.
inline constexpr int tile_columns = 12;
// Numbers of a staged direction: whole tiles, zeros behind the last coefficient.
CGL_HD constexpr int staged_stride(int stride) {
  return (stride + tile_columns - 1) / tile_columns * tile_columns;
}
CGL_HD constexpr int staged_directions(int stride) {
  const int most = panel_numbers(stride) / staged_stride(stride);
  return most < 8 ? most : 8;
}

// The memory of a team.
struct CsdTeamMemory {
  double* gram;        // panel_numbers: of the directions that are small
  double* factor;      // panel_numbers; before that, staged directions
  double* right_side;  // stride, like the next three
  double* solution;
  double* work;
  double* inverse_diagonal;
  double* tile;          // 16
  std::uint32_t* small;  // direction_stride / 32 words of a bit per direction
  std::uint32_t* before;
  std::uint16_t* changed;  // directions / 2: directions that enter or, with the highest bit, leave
};

// All but the Gram matrix.
CGL_HD constexpr std::uint32_t team_bytes(const CsdView& view) {
  const auto numbers = static_cast<std::uint32_t>(panel_numbers(view.stride) + 4 * view.stride + 16);
  const auto words = static_cast<std::uint32_t>(view.direction_stride / 32);
  const auto listed = static_cast<std::uint32_t>(view.direction_stride / 2);
  return (numbers * 8u + words * 8u + listed * 2u + 15u) / 16u * 16u;
}
// `memory` is aligned to 16 bytes; `gram` has panel_numbers.
CGL_HD inline CsdTeamMemory team_memory(const CsdView& view, void* memory, double* gram) {
  CsdTeamMemory team;
  team.gram = gram;
  team.factor = static_cast<double*>(memory);
  team.right_side = team.factor + panel_numbers(view.stride);
  team.solution = team.right_side + view.stride;
  team.work = team.solution + view.stride;
  team.inverse_diagonal = team.work + view.stride;
  team.tile = team.inverse_diagonal + view.stride;
  team.small = reinterpret_cast<std::uint32_t*>(team.tile + 16);
  team.before = team.small + view.direction_stride / 32;
  team.changed = reinterpret_cast<std::uint16_t*>(team.before + view.direction_stride / 32);
  return team;
}

inline constexpr std::uint32_t direction_leaves = 0x8000u;

// Two numbers in one access.
struct alignas(16) NumberPair {
  double first, second;
};
// Count numbers from an address that is a multiple of 16 bytes.
template <int Count>
CGL_HD CGL_INLINE void load_pairs(const double* from, FixedArray<double, Count>& to) {
  static_assert(Count % 2 == 0);
  CGL_UNROLL_8
  for (int i = 0; i < Count; i += 2) {
    const NumberPair pair = *reinterpret_cast<const NumberPair*>(from + i);
    to[i] = pair.first;
    to[i + 1] = pair.second;
  }
}

// csd_project for both matrices.
CGL_HD_GENERIC
template <class Team>
CGL_HD inline void team_project(const Team& team, const CsdView& view, const float* signal,
                                const std::uint32_t* volumes, const CsdTeamMemory& memory) {
  team.each([&](int lane) {
    for (int i = lane; i < view.stride; i += team_lanes) {
      double right_side = 0.0;
      double solution = 0.0;
      for (int g = 0; g < view.gradients; ++g) {
        const double value = static_cast<double>(signal[volumes[g]]);
        right_side = right_side + view.projection[g * view.stride + i] * value;
        solution = solution + view.start[g * view.stride + i] * value;
      }
      memory.right_side[i] = right_side;
      memory.solution[i] = solution;
    }
  });
}

CGL_HD inline int team_count(const CsdView& view, const std::uint32_t* words) {
  int count = 0;
  for (int w = 0; w < view.direction_stride / 32; ++w) count += static_cast<int>(numerics::bit_count(words[w]));
  return count;
}

// The numbers of a tile in the registers of a lane.
struct GramTile {
  double sum[panel_columns][tile_columns];
};
// Four rows from 4 row_block on, twelve columns from 12 column_block on; panel j of the three is stored where it is not
// above the diagonal.
struct TilePosition {
  int row_block, column_block;
  CGL_HD bool holds(int j) const { return 3 * column_block + j <= row_block; }
};
CGL_HD inline TilePosition tile_position(int index) {
  int row_block = 0;
  while (index > row_block / 3) {
    index -= row_block / 3 + 1;
    ++row_block;
  }
  return {row_block, index};
}
CGL_HD constexpr int tile_count(int stride) {
  const int blocks = stride / panel_columns;
  int count = 0;
  for (int b = 0; b < blocks; ++b) count += b / 3 + 1;
  return count;
}

// csd_change_gram, and a copy of the result for the factor. `changed` is counted by the caller.
CGL_HD_GENERIC
template <class Team>
CGL_HD inline void team_change_gram(const Team& team, const CsdTeamView& tables, bool first, int chosen,
                                    const CsdTeamMemory& memory) {
  const CsdView& view = tables.model;
  const int stride = view.stride;
  const int words = view.direction_stride / 32;
  int changed = 0;
  for (int w = 0; w < words && !first; ++w) {
    changed += static_cast<int>(numerics::bit_count(memory.small[w] ^ memory.before[w]));
  }
  const int others = view.directions - chosen;
  const bool from_none = chosen <= others;
  const bool from_before = !first && changed <= (from_none ? chosen : others);
  const double* const from = from_before ? memory.gram : (from_none ? tables.gram : tables.gram_all);
  const int listed = from_before ? changed : (from_none ? chosen : others);
  team.each([&](int lane) {
    int next = 0;
    for (int w = 0; w < words; ++w) {
      const int valid = view.directions - 32 * w;
      const std::uint32_t all = valid >= 32 ? ~0u : (valid > 0 ? (1u << valid) - 1u : 0u);
      const std::uint32_t was = from_before ? memory.before[w] : (from_none ? 0u : all);
      const std::uint32_t bits = memory.small[w] ^ was;
      if ((bits >> lane & 1u) != 0u) {
        const auto index = next + static_cast<int>(numerics::bit_count(bits & ((1u << lane) - 1u)));
        const std::uint32_t leaves = (was >> lane & 1u) != 0u ? direction_leaves : 0u;
        memory.changed[index] = static_cast<std::uint16_t>(static_cast<std::uint32_t>(32 * w + lane) | leaves);
      }
      next += static_cast<int>(numerics::bit_count(bits));
    }
  });
  const int tiles = tile_count(stride);
  const int staged = staged_stride(stride);
  const int batch = staged_directions(stride);
  const bool one_round = tiles <= team_lanes;
  for (int first_tile = 0; first_tile < tiles; first_tile += team_lanes) {
    typename Team::template PerLane<GramTile> lanes;
    typename Team::template PerLane<TilePosition> positions;
    team.each([&](int lane) {
      const TilePosition position = tile_position(first_tile + lane < tiles ? first_tile + lane : 0);
      positions.of(lane) = position;
      GramTile& own = lanes.of(lane);
      CGL_UNROLL_28
      for (int c = 0; c < tile_columns; ++c) {
        const bool there = first_tile + lane < tiles && position.holds(c / panel_columns);
        const double* const column =
            from + panel_column(stride, tile_columns * position.column_block + c) + panel_columns * position.row_block;
        FixedArray<double, panel_columns> row = {};
        if (there) load_pairs<panel_columns>(column, row);
        CGL_UNROLL_8
        for (int r = 0; r < panel_columns; ++r) own.sum[r][c] = row[r];
      }
    });
    for (int begin = 0; begin < listed; begin += batch) {
      const int count = listed - begin < batch ? listed - begin : batch;
      team.each([&](int lane) {
        for (int d = 0; d < count; ++d) {
          const double* const h =
              view.constraint + static_cast<int>(memory.changed[begin + d] & ~direction_leaves) * stride;
          for (int i = lane; i < staged; i += team_lanes) memory.factor[d * staged + i] = i < stride ? h[i] : 0.0;
        }
      });
      team.each([&](int lane) {
        const TilePosition position = positions.of(lane);
        GramTile& own = lanes.of(lane);
        for (int d = 0; d < count; ++d) {
          const double* const h = memory.factor + d * staged;
          // -(h h') is (-h) h'.
          const std::uint64_t sign = (memory.changed[begin + d] & direction_leaves) != 0u ? std::uint64_t{1} << 63 : 0u;
          FixedArray<double, panel_columns> row;
          FixedArray<double, tile_columns> column;
          load_pairs<panel_columns>(h + panel_columns * position.row_block, row);
          load_pairs<tile_columns>(h + tile_columns * position.column_block, column);
          CGL_UNROLL_8
          for (int r = 0; r < panel_columns; ++r) {
            const double value = numerics::bits_float(numerics::float_bits(row[r]) ^ sign);
            CGL_UNROLL_28
            for (int c = 0; c < tile_columns; ++c) own.sum[r][c] = own.sum[r][c] + value * column[c];
          }
        }
      });
    }
    team.each([&](int lane) {
      if (first_tile + lane >= tiles) return;
      const TilePosition position = positions.of(lane);
      const GramTile& own = lanes.of(lane);
      CGL_UNROLL_28
      for (int c = 0; c < tile_columns; ++c) {
        if (!position.holds(c / panel_columns)) continue;
        const int at =
            panel_column(stride, tile_columns * position.column_block + c) + panel_columns * position.row_block;
        CGL_UNROLL_8
        for (int r = 0; r < panel_columns; r += 2) {
          const NumberPair pair = {own.sum[r][c], own.sum[r + 1][c]};
          *reinterpret_cast<NumberPair*>(memory.gram + at + r) = pair;
          if (one_round) *reinterpret_cast<NumberPair*>(memory.factor + at + r) = pair;
        }
      }
    });
  }
  if (one_round) return;
  team.each([&](int lane) {
    for (int column = 0; column < stride; ++column) {
      const int start = panel_column(stride, column);
      for (int row = column / panel_columns * panel_columns + lane; row < stride; row += team_lanes) {
        memory.factor[start + row] = memory.gram[start + row];
      }
    }
  });
}

// Columns of a panel less the terms of all columns before it, in one row: sequential sums.
template <int Columns>
CGL_HD CGL_INLINE void subtract_columns(const double* factor, int stride, int panel, int row, int first_column,
                                        FixedArray<double, Columns>& sum) {
  const double* column = factor;
  for (int before = 0; before < panel_columns * panel; before += panel_columns) {
    const int height = panel_height(stride, before / panel_columns);
    CGL_UNROLL_8
    for (int k = 0; k < panel_columns; ++k) {
      const double value = column[row - before];
      FixedArray<double, Columns> other;
      load_pairs<Columns>(column + first_column - before, other);
      CGL_UNROLL_8
      for (int c = 0; c < Columns; ++c) sum[c] = sum[c] - value * other[c];
      column += height;
    }
  }
}

// factor_cholesky, and the forward half of solve_cholesky: the right side is a row below the others, in the place of a
// padding row (there always is one), since y_j = (b_j - sum over k < j of L_jk y_k) (1 / L_jj) is what a row of the
// factor is made by. False where a pivot was not positive.
CGL_HD_GENERIC
template <class Team>
CGL_HD inline bool team_factor(const Team& team, const CsdView& view, const CsdTeamMemory& memory) {
  const int stride = view.stride;
  // Where 16 rows or fewer remain for the last lanes, two lanes share a row, two columns each.
  const int whole_rows = stride / team_lanes * team_lanes;
  const bool halved = stride > whole_rows && stride - whole_rows <= team_lanes / 2;
  const int rows_of_lanes = halved ? whole_rows : stride;
  bool failed = false;
  team.each([&](int lane) {
    for (int column = lane; column < view.count; column += team_lanes) {
      memory.factor[panel_column(stride, column) + view.count] = memory.right_side[column];
    }
  });
  for (int first = 0; first < view.count; first += panel_columns) {
    const int width = view.count - first < panel_columns ? view.count - first : panel_columns;
    const int panel_index = first / panel_columns;
    double* const panel = memory.factor + panel_offset(stride, panel_index) - first;
    const int height = panel_height(stride, panel_index);
    team.each([&](int lane) {
      for (int row = first / team_lanes * team_lanes + lane; row < rows_of_lanes; row += team_lanes) {
        if (row < first) continue;
        FixedArray<double, panel_columns> sum;
        CGL_UNROLL_8
        for (int c = 0; c < panel_columns; ++c) sum[c] = panel[c * height + row];
        subtract_columns<panel_columns>(memory.factor, stride, panel_index, row, first, sum);
        CGL_UNROLL_8
        for (int c = 0; c < panel_columns; ++c) {
          panel[c * height + row] = sum[c];
          if (row < first + panel_columns) memory.tile[panel_columns * (row - first) + c] = sum[c];
        }
      }
      if (!halved) return;
      const int row = whole_rows + lane % (team_lanes / 2);
      const int column = lane / (team_lanes / 2) * 2;
      if (row < first || row >= stride) return;
      FixedArray<double, 2> sum;
      CGL_UNROLL_8
      for (int c = 0; c < 2; ++c) sum[c] = panel[(column + c) * height + row];
      subtract_columns<2>(memory.factor, stride, panel_index, row, first + column, sum);
      CGL_UNROLL_8
      for (int c = 0; c < 2; ++c) {
        panel[(column + c) * height + row] = sum[c];
        if (row < first + panel_columns) memory.tile[panel_columns * (row - first) + column + c] = sum[c];
      }
    });
    // Every lane factors the tile on the diagonal for itself, then its rows below.
    team.each([&](int lane) {
      double tile[panel_columns][panel_columns];
      double scale[panel_columns];
      CGL_UNROLL_8
      for (int r = 0; r < panel_columns; ++r) {
        CGL_UNROLL_8
        for (int c = 0; c <= r; ++c) tile[r][c] = memory.tile[panel_columns * r + c];
      }
      CGL_UNROLL_8
      for (int c = 0; c < panel_columns; ++c) {
        scale[c] = 0.0;
        if (c >= width) continue;
        double pivot = tile[c][c];
        CGL_UNROLL_8
        for (int k = 0; k < c; ++k) pivot = pivot - tile[c][k] * tile[c][k];
        const bool positive = pivot > 0.0;
        failed = failed || !positive;
        pivot = numerics::root(positive ? pivot : 1.0);
        scale[c] = 1.0 / pivot;
        CGL_UNROLL_8
        for (int r = c + 1; r < panel_columns; ++r) {
          double entry = tile[r][c];
          CGL_UNROLL_8
          for (int k = 0; k < c; ++k) entry = entry - tile[r][k] * tile[c][k];
          tile[r][c] = entry * scale[c];
        }
        if (lane == 0) memory.inverse_diagonal[first + c] = scale[c];
      }
      for (int row = first / team_lanes * team_lanes + lane; row < stride; row += team_lanes) {
        if (row <= first) continue;
        double entry[panel_columns];
        CGL_UNROLL_8
        for (int c = 0; c < panel_columns; ++c) {
          entry[c] = 0.0;
          if (c >= width || row <= first + c) continue;
          entry[c] = panel[c * height + row];
          CGL_UNROLL_8
          for (int k = 0; k < c; ++k) entry[c] = entry[c] - entry[k] * tile[c][k];
          entry[c] = entry[c] * scale[c];
          panel[c * height + row] = entry[c];
        }
      }
    });
  }
  return !failed;
}

// The backward half of solve_cholesky.
CGL_HD_GENERIC
template <class Team>
CGL_HD inline void team_solve(const Team& team, const CsdView& view, const CsdTeamMemory& memory) {
  const int stride = view.stride;
  const int panels = (view.count + panel_columns - 1) / panel_columns;
  team.each([&](int lane) {
    for (int row = lane; row < view.count; row += team_lanes) {
      memory.work[row] = memory.factor[panel_column(stride, row) + view.count];
    }
  });
  // Sums descend from the last row.
  for (int p = panels - 1; p >= 0; --p) {
    const int first = panel_columns * p;
    const int width = view.count - first < panel_columns ? view.count - first : panel_columns;
    const double* const panel = memory.factor + panel_offset(stride, p) - first;
    const int height = panel_height(stride, p);
    team.each([&](int lane) {
      double x[panel_columns];
      CGL_UNROLL_8
      for (int r = panel_columns - 1; r >= 0; --r) {
        x[r] = 0.0;
        if (r >= width) continue;
        double sum = memory.work[first + r];
        CGL_UNROLL_8
        for (int k = panel_columns - 1; k > r; --k) {
          if (k < width) sum = sum - panel[r * height + first + k] * x[k];
        }
        x[r] = sum * memory.inverse_diagonal[first + r];
        if (lane == 0) memory.solution[first + r] = x[r];
      }
      for (int row = lane; row < first; row += team_lanes) {
        const double* const column = memory.factor + panel_column(stride, row);
        double sum = memory.work[row];
        CGL_UNROLL_8
        for (int k = panel_columns - 1; k >= 0; --k) {
          if (k < width) sum = sum - column[first + k] * x[k];
        }
        memory.work[row] = sum;
      }
    });
  }
}

// 32 directions for each of `Words` words from `word` on.
CGL_HD_GENERIC
template <int Words, class Team>
CGL_HD inline void team_find_words(const Team& team, const CsdView& view, const double* coefficients, int count,
                                   double threshold, int word, std::uint32_t* small) {
  team.template ballots<Words>(
      [&](int lane, FixedArray<bool, Words>& is_small) {
        const double* const table = view.amplitudes + 32 * word + lane;
        FixedArray<double, Words> sum;
        CGL_UNROLL_8
        for (int w = 0; w < Words; ++w) sum[w] = 0.0;
        for (int i = 0; i < count; ++i) {
          const double value = coefficients[i];
          CGL_UNROLL_8
          for (int w = 0; w < Words; ++w) sum[w] = sum[w] + table[i * view.direction_stride + 32 * w] * value;
        }
        CGL_UNROLL_8
        for (int w = 0; w < Words; ++w) {
          is_small[w] = 32 * (word + w) + lane < view.directions && sum[w] < threshold;
        }
      },
      small + word);
}

CGL_HD_GENERIC
template <class Team>
CGL_HD inline void team_find_small(const Team& team, const CsdView& view, const double* coefficients, int count,
                                   double threshold, std::uint32_t* small) {
  const int words = view.direction_stride / 32;
  int word = 0;
  for (; word + 6 <= words; word += 6) {
    team_find_words<6>(team, view, coefficients, count, threshold, word, small);
  }
  for (; word < words; word += 2) team_find_words<2>(team, view, coefficients, count, threshold, word, small);
}

// csd_fit_voxel; the coefficients are memory.solution, which is not to be used where the end is not_solvable.
CGL_HD_GENERIC
template <class Team>
CGL_HD inline CsdEnd csd_fit_team(const Team& team, const CsdTeamView& tables, const float* signal,
                                  const std::uint32_t* volumes, const CsdTeamMemory& memory, int& iterations) {
  const CsdView& view = tables.model;
  iterations = 0;
  team_project(team, view, signal, volumes, memory);
  const double threshold = view.threshold_factor * memory.solution[0];
  team_find_small(team, view, memory.solution, view.low_order_count, threshold, memory.small);
  if (team_count(view, memory.small) == 0) {
    team_find_small(team, view, memory.solution, view.count, threshold, memory.small);
  }
  if (team_count(view, memory.small) == 0 || view.iterations == 0) return CsdEnd::unconstrained;
  while (iterations < view.iterations) {
    team_change_gram(team, tables, iterations == 0, team_count(view, memory.small), memory);
    ++iterations;
    if (!team_factor(team, view, memory)) return CsdEnd::not_solvable;
    team_solve(team, view, memory);
    team.each([&](int lane) {
      for (int w = lane; w < view.direction_stride / 32; w += team_lanes) memory.before[w] = memory.small[w];
    });
    team_find_small(team, view, memory.solution, view.count, threshold, memory.small);
    bool equal = true;
    for (int w = 0; w < view.direction_stride / 32; ++w) equal = equal && memory.before[w] == memory.small[w];
    if (equal) return CsdEnd::converged;
  }
  return CsdEnd::iterations_spent;
}

// The 32 lanes one after the other: for the host, where tests hold it equal to csd_fit_voxel.
struct SerialTeam {
  template <class T>
  struct PerLane {
    T lanes[team_lanes];
    T& of(int lane) { return lanes[lane]; }
  };
  template <class Body>
  void each(Body&& body) const {
    for (int lane = 0; lane < team_lanes; ++lane) body(lane);
  }
  template <int Words, class Body>
  void ballots(Body&& body, std::uint32_t* words) const {
    for (int w = 0; w < Words; ++w) words[w] = 0;
    for (int lane = 0; lane < team_lanes; ++lane) {
      FixedArray<bool, Words> bits;
      body(lane, bits);
      for (int w = 0; w < Words; ++w) words[w] |= bits[w] ? 1u << lane : 0u;
    }
  }
};

}  // namespace cingulum
