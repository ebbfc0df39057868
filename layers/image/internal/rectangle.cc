#include <keel/layers/image/internal/rectangle.h>

namespace keel {

Rectangle random_rectangle(const ImageRandom& random, int64_t image, int k, double height,
                           double width, const Shape& images) {
  const double whole_height = static_cast<double>(images[1]),
               whole_width = static_cast<double>(images[2]);
  const double h = height * whole_height, w = width * whole_width;
  const double left = random.uniform(image, k) * (whole_width - w),
               top = random.uniform(image, k + 1) * (whole_height - h);
  return {.left = left, .right = left + w, .top = top, .bottom = top + h};
}

Tensor inside_of(const std::vector<Rectangle>& rectangles, const Shape& images) {
  Tensor out = Tensor::zeros(images.with(3, 1), DType::kBool);
  auto to = out.mutable_data<bool>().begin();
  for (const Rectangle& r : rectangles) {
    for (int64_t y = 0; y < images[1]; ++y) {
      for (int64_t x = 0; x < images[2]; ++x) {
        const double row = static_cast<double>(y), column = static_cast<double>(x);
        *to++ = column >= r.left && column < r.right && row >= r.top && row < r.bottom;
      }
    }
  }
  return out;
}

}  // namespace keel
