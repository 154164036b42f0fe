// A field over the pixels of a tile that is smooth: a polynomial of two coordinates from -1 to 1, fitted by least
// squares. Flat field, curvature and the mean tile are such fields; few tiles do not suffice for more.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "oct/volume/host_volume.hpp"

namespace cingulum::oct {

// Products of Legendre polynomials up to a total degree at a place of an image of rows x columns pixels; the first
// is 1.
[[nodiscard]] std::vector<double> polynomial_terms(double row, double column, std::size_t rows, std::size_t columns,
                                                   int degree);
// The polynomial of total degree `degree` next to the image; `weights` (none: all 1) has one number per pixel.
[[nodiscard]] HostImage fit_polynomial(const HostImage& image, int degree, std::span<const double> weights = {});

}  // namespace cingulum::oct
