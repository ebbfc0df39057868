#include <keel/savedmodel/serving/base/inflate.h>

#include <algorithm>
#include <memory>
#include <new>
#include <zlib.h>

#include <keel/savedmodel/serving/base/serve_error.h>

namespace keel::serving {

std::string inflate_body(std::string_view body, bool gzip, size_t limit) {
  constexpr int kGzip = 16 + MAX_WBITS;
  z_stream stream = {};
  if (inflateInit2(&stream, gzip ? kGzip : MAX_WBITS) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> closer(&stream, &inflateEnd);
  std::string out;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body.data()));
  stream.avail_in = static_cast<uInt>(body.size());
  size_t used = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    if (used > limit) {
      throw ServeError::with_status(413, Code::kInvalidArgument,
                                    "the decompressed body is larger than ", limit, " bytes");
    }
    // One byte more than allowed shows that a body is too large.
    out.resize(std::min(std::max<size_t>(out.size() * 2, 4096), limit + 1));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + used);
    stream.avail_out = static_cast<uInt>(out.size() - used);
    status = inflate(&stream, Z_NO_FLUSH);
    used = out.size() - stream.avail_out;
    if (status == Z_BUF_ERROR && stream.avail_in > 0 && used == out.size()) status = Z_OK;
    if (gzip && status == Z_STREAM_END && stream.avail_in > 0) status = inflateReset(&stream);
  }
  if (status != Z_STREAM_END || stream.avail_in != 0) {
    throw ServeError(Code::kInvalidArgument, "the ", gzip ? "gzip" : "deflate",
                     " body is damaged or incomplete");
  }
  if (used > limit) {
    throw ServeError::with_status(413, Code::kInvalidArgument,
                                  "the decompressed body is larger than ", limit, " bytes");
  }
  out.resize(used);
  return out;
}

}  // namespace keel::serving
