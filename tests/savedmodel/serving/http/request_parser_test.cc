// Tests savedmodel/serving/http/request_parser.cc.
#include <keel/savedmodel/serving/http/request_parser.h>

#include <gtest/gtest.h>

namespace keel::serving::request_parser_test {

using State = RequestParser::State;

constexpr HttpLimits kLimits = {.header_bytes = 1000, .headers = 10, .body_bytes = 100};

// The state after each byte has arrived alone.
State parsed_slowly(RequestParser& parser, const std::string& text, size_t& used) {
  for (used = 1; used <= text.size(); ++used) {
    const State state = parser.parse(std::string_view(text).substr(0, used));
    if (state == State::kComplete || state == State::kFailed) return state;
  }
  return parser.state();
}

int error_of(const std::string& text) {
  RequestParser whole(kLimits), slow(kLimits);
  const State state = whole.parse(text);
  size_t used = 0;
  const State slowly = parsed_slowly(slow, text, used);
  EXPECT_EQ(state == State::kFailed, slowly == State::kFailed) << text;
  EXPECT_EQ(whole.error_status(), slow.error_status()) << text;
  return state == State::kFailed ? whole.error_status() : 0;
}

// S-070
TEST(RequestParserTest, FindsRequestsInAPipeline) {
  const std::string one = "POST /a?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
  const std::string two = "GET http://h/b HTTP/1.0\r\n\r\n";
  std::string bytes = "\r\n" + one + two;
  RequestParser parser(kLimits);
  ASSERT_EQ(parser.parse(bytes), State::kComplete);
  HttpRequest request = parser.request(bytes);
  EXPECT_EQ(request.method, HttpMethod::kPost);
  EXPECT_EQ(request.path, "/a");
  EXPECT_EQ(request.body, "abc");
  EXPECT_TRUE(request.keep_alive);
  bytes.erase(0, parser.consumed());
  EXPECT_EQ(bytes, two);
  parser.reset();
  ASSERT_EQ(parser.parse(bytes), State::kComplete);
  request = parser.request(bytes);
  EXPECT_EQ(request.path, "/b");
  EXPECT_FALSE(request.keep_alive);
}

// S-070
TEST(RequestParserTest, KnowsWhenToKeepTheConnection) {
  const auto keeps = [](const std::string& version, const std::string& connection) {
    const std::string text = "GET / HTTP/" + version + "\r\nHost: h\r\n" + connection + "\r\n";
    RequestParser parser(kLimits);
    EXPECT_EQ(parser.parse(text), State::kComplete);
    return parser.request(text).keep_alive;
  };
  EXPECT_TRUE(keeps("1.1", ""));
  EXPECT_FALSE(keeps("1.1", "connection: foo, Close\r\n"));
  EXPECT_FALSE(keeps("1.0", ""));
  EXPECT_TRUE(keeps("1.0", "Connection: keep-alive\r\n"));
}

// S-071
TEST(RequestParserTest, JoinsChunks) {
  const std::string text =
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "1\r\na\r\n2;ext=1\r\nbc\r\n00A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n";
  RequestParser whole(kLimits), slow(kLimits);
  ASSERT_EQ(whole.parse(text), State::kComplete);
  EXPECT_EQ(whole.request(text).body, "abc0123456789");
  EXPECT_EQ(whole.consumed(), text.size());
  size_t used = 0;
  ASSERT_EQ(parsed_slowly(slow, text, used), State::kComplete);
  EXPECT_EQ(slow.request(text).body, "abc0123456789");
}

// S-071
TEST(RequestParserTest, ForgetsTheTextOfReadChunks) {
  RequestParser parser({.body_bytes = 1 << 20});
  std::string bytes = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::string body;
  size_t most = 0;
  for (int i = 0; i < 50000; ++i) {
    bytes += "1\r\nx\r\n";
    body += "x";
    ASSERT_EQ(parser.parse(bytes), State::kBody);
    parser.drop_read_chunks(bytes);
    most = std::max(most, bytes.size());
  }
  bytes += "0\r\n\r\n";
  ASSERT_EQ(parser.parse(bytes), State::kComplete);
  EXPECT_EQ(parser.request(bytes).body, body);
  EXPECT_LT(most, 40000U);
}

// S-072
TEST(RequestParserTest, TellsThatTheClientWaits) {
  const std::string text =
      "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
  RequestParser parser(kLimits);
  EXPECT_EQ(parser.parse(text), State::kBody);
  EXPECT_TRUE(parser.take_expectation());
  EXPECT_FALSE(parser.take_expectation());
  EXPECT_EQ(error_of("GET / HTTP/1.1\r\nHost: h\r\nExpect: more\r\n\r\n"), 417);
}

// S-078, S-160, S-161
TEST(RequestParserTest, RefusesWhatIsNotHttp) {
  const std::string host = "Host: h\r\n";
  const auto with = [&](const std::string& headers) {
    return error_of("POST / HTTP/1.1\r\n" + host + headers + "\r\n");
  };
  EXPECT_EQ(error_of("\x16\x03\x01"), 400);
  EXPECT_EQ(error_of("PREDICT\r\n\r\n"), 400);
  EXPECT_EQ(error_of("GET /\r\n\r\n"), 400);
  EXPECT_EQ(error_of("GET / HTTP/2.0\r\n\r\n"), 505);
  EXPECT_EQ(error_of("GET a HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(error_of("GET / b HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(error_of("GET / HTTP/1.1\r\n\r\n"), 400) << "no Host";
  EXPECT_EQ(with(host), 400) << "two of Host";
  EXPECT_EQ(with("A b: 1\r\n"), 400);
  EXPECT_EQ(with(" folded\r\n"), 400);
  EXPECT_EQ(with("A\r\n"), 400);
  EXPECT_EQ(with(std::string("A: \0\r\n", 6)), 400);
  EXPECT_EQ(with("Content-Length: -1\r\n"), 400);
  EXPECT_EQ(with("Content-Length: 1a\r\n"), 400);
  EXPECT_EQ(with("Content-Length: 1\r\nContent-Length: 1\r\n"), 400);
  EXPECT_EQ(with("Content-Length: 101\r\n"), 413);
  EXPECT_EQ(with("Content-Length: 99999999999999999999999\r\n"), 413);
  EXPECT_EQ(with("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), 400);
  EXPECT_EQ(with("Transfer-Encoding: gzip, chunked\r\n"), 400);
  EXPECT_EQ(with("X: " + std::string(1000, 'x') + "\r\n"), 431);
  std::string many;
  for (int i = 0; i < 10; ++i) many += "X: 1\r\n";
  EXPECT_EQ(with(many), 431);
  const auto chunk = [&](const std::string& text) {
    return error_of("POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n" + text);
  };
  for (const char* text : {"zz\r\n", "\r\n", "-1\r\n", "1 1\r\n", "1\r\nab\r\n"}) {
    EXPECT_EQ(chunk(text), 400) << text;
  }
  EXPECT_EQ(chunk("65\r\n"), 413);
  EXPECT_EQ(chunk("7fffffffffffffff\r\n"), 400);
  EXPECT_EQ(chunk("64\r\n" + std::string(100, 'x') + "\r\n1\r\n"), 413);
}

// S-090
TEST(PercentDecodeTest, DecodesOnce) {
  std::string out;
  ASSERT_TRUE(percent_decode("a%2520+%C3%A4", out));
  EXPECT_EQ(out, "a%20+\xC3\xA4");
  for (const char* text : {"%", "%2", "%2g", "%g2"})
    EXPECT_FALSE(percent_decode(text, out)) << text;
}

}  // namespace keel::serving::request_parser_test
