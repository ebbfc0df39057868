// Tests savedmodel/serving/base/inflate.cc and metrics.cc.
#include <keel/savedmodel/serving/base/inflate.h>

#include <zlib.h>

#include <gtest/gtest.h>

#include <keel/savedmodel/serving/base/metrics.h>

namespace keel::serving::inflate_test {

std::string compressed(const std::string& text, bool gzip) {
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, gzip ? 16 + MAX_WBITS : MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(text.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

int status_of(const std::string& body, bool gzip, size_t limit) {
  try {
    inflate_body(body, gzip, limit);
  } catch (const ServeError& error) {
    return error.status();
  }
  return 200;
}

// S-074
TEST(InflateTest, DecompressesBothFormats) {
  const std::string text = "{\"instances\": [" + std::string(100000, '1') + "]}";
  for (bool gzip : {false, true}) {
    EXPECT_EQ(inflate_body(compressed(text, gzip), gzip, text.size()), text);
    EXPECT_EQ(inflate_body(compressed("", gzip), gzip, 0), "");
    EXPECT_EQ(status_of(compressed(text, !gzip), gzip, 1 << 20), 400);
    EXPECT_EQ(status_of("", gzip, 10), 400);
    const std::string body = compressed(text, gzip);
    EXPECT_EQ(status_of(body.substr(0, body.size() / 2), gzip, 1 << 20), 400);
    EXPECT_EQ(status_of(body + "x", gzip, 1 << 20), 400);
  }
}

// RFC 1952, 2.2: a gzip body may have several members. zlib's format has one.
TEST(InflateTest, JoinsTheMembersOfGzip) {
  const std::string first(70000, 'a'), second = "second";
  const std::string body = compressed(first, true) + compressed("", true);
  EXPECT_EQ(inflate_body(body + compressed(second, true), true, 1 << 20), first + second);
  EXPECT_EQ(inflate_body(body, true, first.size()), first);
  EXPECT_EQ(status_of(body + compressed(second, true), true, first.size() + 5), 413);
  EXPECT_EQ(status_of(body + compressed(second, true).substr(0, 15), true, 1 << 20), 400);
  EXPECT_EQ(status_of(compressed(first, false) + compressed(second, false), false, 1 << 20), 400);
}

// S-160
TEST(InflateTest, StopsAtTheLimit) {
  const std::string bomb = compressed(std::string(10 << 20, ' '), true);
  EXPECT_LT(bomb.size(), 20000U);
  EXPECT_EQ(status_of(bomb, true, 1 << 20), 413);
  EXPECT_EQ(status_of(bomb, true, (10 << 20) - 1), 413);
  EXPECT_EQ(status_of(bomb, true, 10 << 20), 200);
}

// S-150
TEST(MetricsTest, HistogramsAreCumulative) {
  Histogram histogram(latency_limits());
  for (double value : {5.0, 10.0, 11.0, 1e12}) histogram.observe(value);
  std::string page;
  histogram.append_to(page, "x", "a=\"b\"");
  EXPECT_TRUE(page.starts_with("x_bucket{a=\"b\",le=\"10\"} 2\nx_bucket{a=\"b\",le=\"18\"} 3\n"));
  EXPECT_NE(page.find("le=\"104.976\"} 3\n"), std::string::npos);
  EXPECT_NE(page.find("le=\"188.957\"} 3\n"), std::string::npos);
  EXPECT_NE(page.find("le=\"+Inf\"} 4\n"), std::string::npos);
  EXPECT_NE(page.find("x_count{a=\"b\"} 4\n"), std::string::npos);
  EXPECT_EQ(label_value("a\\b\"c\nd"), "a\\\\b\\\"c\\nd");
}

}  // namespace keel::serving::inflate_test
