-- Uses up random numbers.
-- kind: health
-- expect: healthy
local first = math.random(1000000)

function InterpretHealth(object)
    math.randomseed(first)
    for i = 1, 100 do
        math.random()
    end
    return first == 782827
end
