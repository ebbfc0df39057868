// Random rectangles of images.
#pragma once

#include <keel/layers/image/image_layer.h>

namespace keel {

// A part of an image: the positions from `left` to below `right`, and so on.
struct Rectangle {
  double left = 0, right = 0, top = 0, bottom = 0;
};

// Returns a rectangle with these fractions of the sides of an image, whose place is uniform(k) and
// uniform(k + 1) of the image.
Rectangle random_rectangle(const ImageRandom& random, int64_t image, int k, double height,
                           double width, const Shape& images);
// Returns bool [batch, height, width, 1]: true inside of the rectangle of each image.
Tensor inside_of(const std::vector<Rectangle>& rectangles, const Shape& images);

}  // namespace keel
