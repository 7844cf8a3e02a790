-- Kept before anything else runs, since the script under inspection may be this one.
local order = {}
for name in next, _G do
    order[#order + 1] = tostring(name)
end

local function walk(found, seen, path, value)
    local kind = type(value)
    if kind == 'table' or kind == 'function' then
        if seen[value] then
            found[path] = 'the same as ' .. seen[value]
            return
        end
        seen[value] = path
        found[path] = kind
        if kind == 'table' then
            for name, member in next, value do
                walk(found, seen, path .. '.' .. tostring(name), member)
            end
        end
    else
        found[path] = kind .. ' ' .. tostring(value)
    end
end

local function attempt(found, name, ...)
    local fine, result = pcall(...)
    found['attempt ' .. name] = tostring(fine) .. ' ' .. tostring(result)
end

function f(object)
    local found, seen = {}, {}
    found.order = table.concat(order, ' ')
    walk(found, seen, '_G', _G)
    walk(found, seen, 'kube', require('kube'))
    walk(found, seen, 'object', object)
    found['the same kube'] = tostring(require('kube') == require('kube'))
    found.random = math.random(1000000) .. ' ' .. math.random()
    found.upper = ('text'):upper() .. #('text') .. ('text'):sub(2, 3) .. tostring(('').leak)
    found.format = string.format('%s %d %5.2f %s', {}, 1, 2, nil)
    attempt(found, 'sort', function()
        local list = { 3, 1, 2 }
        table.sort(list)
        table.insert(list, 4)
        return table.concat(list, ',')
    end)
    attempt(found, 'resourceAdd', require('kube').resourceAdd, '1', '500m')
    attempt(found, 'getResourceQuantity', require('kube').getResourceQuantity, '1Ki')
    attempt(found, 'require', require, 'evil')
    attempt(found, 'require kube', require, 'kube')
    attempt(found, 'time', os.time)
    attempt(found, 'date', os.date, '%Y', 0)
    attempt(found, 'error', error, 'text')
    attempt(found, 'string method', function() return ('x').leak.leak end)
    attempt(found, 'setmetatable', setmetatable, {}, {})
    attempt(found, 'global', function() return leak.leak end)
    attempt(found, 'select', select, '#', unpack({ 1, 2, 3 }))
    return found
end
