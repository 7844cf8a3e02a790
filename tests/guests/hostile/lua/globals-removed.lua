-- Removes every global variable.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local globals = _G
    for name in pairs(globals) do
        globals[name] = nil
    end
    return require == nil and string == nil and pcall == nil
end
