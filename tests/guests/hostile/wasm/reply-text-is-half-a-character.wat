;; The code of the reason, in UTF-16, ends in the middle of a character.
;; kind: health
;; expect: bad-reply
(component
  {{before}}
  (core module $code
    {{core}}
    (data (i32.const 600) "A\00\00\d8")
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (i32.store (i32.const 520) (i32.const 600))
      (i32.store (i32.const 524) (i32.const 2))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{instance}}
  {{types}}
  {{plugin}}
  (func $interpret (param "observed" (borrow $object)) (result (result $verdict (error $error)))
    (canon lift (core func $code "interpret") (memory (core memory $heap "memory")) string-encoding=utf16))
  (instance $health (export "interpret" (func $interpret)))
  (export "bulkhead:policy/health@0.1.0" (instance $health)))
