/* SPDX-License-Identifier: Apache-2.0
 *
 * A minimal harness for tests in C++, with or without exceptions: cmocka's asserts leave functions
 * by longjmp, which runs no destructors.
 *
 *     TEST(subject__behaviour) { CHECK(x == 1); CHECK_EQ(n, 2u); }
 */
#ifndef TESTS_CPP_CHECK_HPP
#define TESTS_CPP_CHECK_HPP

#include <clgraph/clgraph.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace check
{

struct test {
    const char *name;
    void (*run)();
};
inline std::vector<test> &tests()
{
    static std::vector<test> all;
    return all;
}
inline int &failures()
{
    static int n = 0;
    return n;
}
struct add {
    add(const char *name, void (*run)()) { tests().push_back({name, run}); }
};
inline bool that(bool holds, const char *what, const char *file, int line)
{
    if (holds) return true;
    std::printf("%s:%d: failed: %s\n", file, line, what);
    failures()++;
    return false;
}
template <class A, class B>
bool equal(const A &a, const B &b, const char *what, const char *file, int line)
{
    if (a == b) return true;
    std::ostringstream text;
    text << what << ": " << a << " and " << b;
    return that(false, text.str().c_str(), file, line);
}
/* Whether a text has a part; prints the text if not. */
inline bool has(const std::string &text, const char *part)
{
    if (text.find(part) != std::string::npos) return true;
    std::printf("not in the text: '%s': '%s'\n", part, text.c_str());
    return false;
}
#if CLGRAPH_EXCEPTIONS
/* Whether f throws an Exception of the status. */
template <class Exception = clgraph::error, class F> bool throws(F &&f, clg_status status)
{
    try {
        f();
    } catch (const Exception &e) {
        if (e.status() == status) return true;
        std::printf("threw %s: %s\n", clg_status_name(e.status()), e.what());
        return false;
    }
    std::printf("threw nothing\n");
    return false;
}
#endif
inline int main()
{
    for (const test &t : tests()) {
        const int before = failures();
#if CLGRAPH_EXCEPTIONS
        try {
            t.run();
        } catch (const clgraph::error &e) {
            std::printf("%s: threw %s: %s\n", t.name, clg_status_name(e.status()), e.what());
            failures()++;
        } catch (const std::exception &e) {
            std::printf("%s: threw %s\n", t.name, e.what());
            failures()++;
        }
#else
        t.run();
#endif
        std::printf("%s %s\n", failures() == before ? "ok    " : "FAILED", t.name);
    }
    std::printf("%zu tests, %d failures\n", tests().size(), failures());
    return failures() || tests().empty() ? 1 : 0;
}

} // namespace check

#define TEST(name)                                                                                 \
    static void name();                                                                            \
    static const check::add add_##name(#name, name);                                               \
    static void name()
#define CHECK(x) check::that(static_cast<bool>(x), #x, __FILE__, __LINE__)
#define CHECK_EQ(a, b) check::equal(a, b, #a " == " #b, __FILE__, __LINE__)

int main() { return check::main(); }

#endif
