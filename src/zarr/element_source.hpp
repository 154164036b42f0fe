// Elements that are read by boxes, wherever they are: a box of an array, or a level of a pyramid that was just made.
// What makes levels and finds windows reads through it.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "base/element_type.hpp"
#include "base/result.hpp"
#include "zarr/array.hpp"
#include "zarr/row_major.hpp"

namespace cingulum::zarr {

// any thread
class ElementSource {
 public:
  ElementSource(Shape shape, ElementType type) : shape_(std::move(shape)), type_(type) {}
  virtual ~ElementSource() = default;
  ElementSource(const ElementSource&) = delete;
  ElementSource& operator=(const ElementSource&) = delete;

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] ElementType type() const { return type_; }
  // Elements of the box in row-major order.
  [[nodiscard]] virtual Status read(const Region& box, std::span<std::byte> to) const = 0;

 private:
  Shape shape_;
  ElementType type_;
};

// A box of an array.
class ArraySource final : public ElementSource {
 public:
  // `options` without a pool: boxes are read by several threads, each box by one.
  ArraySource(Array array, Region region, ReadOptions options)
      : ElementSource(region.shape, array.metadata().type),
        array_(std::move(array)),
        region_(std::move(region)),
        options_(std::move(options)) {}

  Status read(const Region& box, std::span<std::byte> to) const override {
    Region place = box;
    for (std::size_t d = 0; d < place.origin.size(); ++d) place.origin[d] += region_.origin[d];
    const auto report = read_region(array_, place, to, options_);
    if (!report) return tl::make_unexpected(report.error());
    return {};
  }

 private:
  Array array_;
  Region region_;
  ReadOptions options_;
};

// Elements in memory, which belong to the caller.
class MemorySource final : public ElementSource {
 public:
  MemorySource(Shape shape, ElementType type, std::span<const std::byte> elements)
      : ElementSource(std::move(shape), type), elements_(elements) {}

  Status read(const Region& box, std::span<std::byte> to) const override {
    const Shape start(box.shape.size());
    copy_box(box.shape, type().bytes(), elements_.data(), shape(), box.origin, to.data(), box.shape, start);
    return {};
  }

 private:
  std::span<const std::byte> elements_;
};

}  // namespace cingulum::zarr
