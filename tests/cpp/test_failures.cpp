/* SPDX-License-Identifier: Apache-2.0
 *
 * Fails each allocation of the library in turn, through its allocator: the C++ interface must
 * report each as an exception, or not need it, and leave nothing allocated.
 */
#include "check.hpp"
#include "models.hpp"

#include <atomic>
#include <cstdint>

namespace
{

/* Counts live blocks, and fails one allocation. The library calls it from one thread at a time
 * here, but for helpers of the driver, which do not use it. */
struct allocator {
    std::atomic<std::size_t> n_live{0}, n_made{0};
    std::atomic<std::size_t> failing{SIZE_MAX};
    std::atomic<bool> failed{false};

    static void *resize(void *user, void *memory, std::size_t size)
    {
        auto *self = static_cast<allocator *>(user);
        if (size == 0) {
            if (memory) self->n_live--;
            std::free(memory);
            return nullptr;
        }
        if (self->n_made++ == self->failing) {
            self->failed = true;
            return nullptr;
        }
        void *made = std::realloc(memory, size);
        if (made && !memory) self->n_live++;
        return made;
    }
    void arm(std::size_t n)
    {
        n_made = 0;
        failed = false;
        failing = n;
    }
};

void work(const clgraph::context &context)
{
    clgraph::builder b(13);
    b.input("x", CLG_FLOAT32, {-1, 2});
    b.constant("W", {2, 1}, std::vector<float>{1, 2});
    b.node("MatMul", {"x", "W"}, {"y"});
    b.output("y");
    const clgraph::model model = b.build();
    const clgraph::model loaded = clgraph::model::load_memory(model.save_memory());
    clgraph::session session(context, loaded);
    session.set_input("x", {1, 2}, std::vector<float>{1, 1});
    session.run_async().wait();
    CHECK_EQ(session.get_output("y").to_vector<float>()[0], 3.0f);
    const clgraph::value strings = clgraph::value::strings({2}, {"a", "b"});
    CHECK_EQ(std::string(strings.string_at(1)), "b");
}

} // namespace

TEST(failures__every_allocation_is_an_exception)
{
    allocator a;
    const clg_allocator c = {&allocator::resize, &a};
    clgraph::set_allocator(c);
    std::size_t n = 0, n_thrown = 0;
    {
        const auto context = clgraph::context::create();
        work(context); /* compiles */
        const std::size_t live = a.n_live;
        for (bool failed = true; failed; n++) {
            a.arm(n);
            bool thrown = false;
            try {
                work(context);
            } catch (const clgraph::out_of_memory &e) {
                thrown = e.message()[0] != '\0' && e.status() == CLG_ERROR_OUT_OF_HOST_MEMORY;
            }
            failed = a.failed;
            a.arm(SIZE_MAX);
            n_thrown += thrown;
            if (!failed) CHECK(!thrown);
            if (!CHECK_EQ(a.n_live.load(), live)) break;
        }
    }
    std::printf("%zu allocations, %zu exceptions\n", n, n_thrown);
    CHECK(n > 100 && n_thrown > 50);
    CHECK_EQ(a.n_live.load(), 0u);
    clgraph::reset_allocator();
}
