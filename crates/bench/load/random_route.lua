-- Asks for one of {{routes}} routes at random. Every request is built before the load starts, so that a call costs
-- wrk one table read.
local requests = {}

function init(args)
    for i = 1, {{routes}} do
        requests[i] = wrk.format("GET", "/hello" .. i)
    end
    math.randomseed(1)
end

function request()
    return requests[math.random({{routes}})]
end
