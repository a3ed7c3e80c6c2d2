"""Templates that try to escape to Python; each must fail or yield plain data.

`ESCAPES` is a plain list so that tests of other packages can put it into every field that takes a template.
"""

from __future__ import annotations

_WALKS = [
    "{{ ''.__class__ }}", "{{ ''.__class__.__mro__ }}", "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ ''.__class__.__base__.__subclasses__()[40]('/etc/passwd').read() }}",
    "{{ [].__class__.__base__.__subclasses__() }}", "{{ {}.__class__.__bases__[0] }}",
    "{{ ().__class__.__mro__[-1] }}", "{{ (1).__class__ }}", "{{ 1.5.__class__ }}", "{{ true.__class__ }}",
    "{{ none.__class__ }}", "{{ user.__class__ }}", "{{ user.name.__class__ }}", "{{ user['__class__'] }}",
    "{{ user['name']['__class__'] }}", "{{ nums['__class__'] }}", "{{ nums['append'] }}", "{{ nums['__len__']() }}",
    "{{ word['upper'] }}", "{{ word['__class__']['__mro__'] }}", "{{ ''['__cla' ~ 'ss__'] }}",
    "{{ ''['__ssalc__'[::-1]] }}", "{{ ''['\\x5f\\x5fclass\\x5f\\x5f'] }}", "{{ ''['\\137\\137class\\137\\137'] }}",
    "{{ ''['\\u005f\\u005fclass\\u005f\\u005f'] }}", "{{ user.__init__.__globals__ }}", "{{ user.get.__self__ }}",
    "{{ user.get.__func__ }}", "{{ user.items.__call__() }}", "{{ word.upper.__self__ }}", "{{ nope.__class__ }}",
    "{{ nope.__class__.__init__.__globals__ }}", "{{ nope._undefined_exception }}",
    "{{ nope['__class__']['__init__'] }}", "{{ nope.path }}", "{{ nope.holder }}", "{{ nope.fail() }}",
    "{{ nope.below('x') }}", "{{ user.__dict__ }}", "{{ user.__getattribute__('name') }}",
    "{{ user.__getitem__('name') }}", "{{ user.__reduce_ex__(2) }}",
]  # fmt: skip
_UNICODE = [
    "{{ ''.__ｃlass__ }}", "{{ ''.ｕpper }}", "{{ ''.__𝓬𝓵𝓪𝓼𝓼__ }}", "{{ ''['__ｃlass__'] }}", "{{ ''.__cl\u200bass__ }}",
    "{{ ｕser.__class__ }}",
]  # fmt: skip
_FILTERS = [
    "{{ '' | attr('__class__') }}", "{{ '' | attr('__class__') | attr('__mro__') }}", "{{ user | attr('get') }}",
    "{{ [''] | map('attr', '__class__') | list }}", "{{ [''] | map(attribute='__class__') | list }}",
    "{{ [''] | map(attribute='__class__.__mro__') | list }}", "{{ [user] | map(attribute='name.__class__') | list }}",
    "{{ [user] | map(attribute='get') | list }}", "{{ users | groupby('__class__') }}",
    "{{ users | groupby('name.__class__') }}", "{{ (users | groupby('name') | first).__class__ }}",
    "{{ (users | groupby('name') | first).count }}", "{{ users | sort(attribute='__class__') }}",
    "{{ users | sort(attribute='name.__class__,age') }}", "{{ users | unique(attribute='__class__') | list }}",
    "{{ users | min(attribute='__class__') }}", "{{ users | max(attribute='name.__doc__') }}",
    "{{ users | sum(attribute='__class__') }}", "{{ users | sum(attribute='name', start=nope) }}",
    "{{ users | join(',', attribute='__class__') }}", "{{ users | selectattr('__class__') | list }}",
    "{{ users | selectattr('name.__class__', 'defined') | list }}",
    "{{ users | rejectattr('__class__', 'undefined') | list }}", "{{ {'a' : 1} | xmlattr }}", "{{ nums | random }}",
    "{{ nums | map('eval') | list }}", "{{ ['1'] | map('__import__') | list }}",
    "{{ nums | select('__class__') | list }}", "{{ user | dictsort(by='__class__') }}",
    "{{ user | items | first | attr('__class__') }}", "{{ user | tojson(default=word) }}",
    "{{ user | tojson(cls=user) }}", "{{ word | default.__class__ }}", "{{ word | upper.__globals__ }}",
    "{{ 'x' | regex_replace('x', '\\\\g<__class__>') }}",
]  # fmt: skip
_FORMATS = [
    "{{ '{0.__class__}'.format(user) }}", "{{ '{0.__class__.__mro__}'.format('') }}",
    "{{ '{0[name].__class__}'.format(user) }}", "{{ '{a.__class__}'.format(a=1) }}",
    "{{ '{a[__class__]}'.format(a=user) }}", "{{ '{:{0.__class__}}'.format(1) }}", "{{ '{:{}}'.format(1, '5') }}",
    "{{ '{!x}'.format(1) }}", "{{ '{0.__class__}'.format_map({'0': 1}) }}", "{{ '{a}'.format_map(user) }}",
    "{{ '%(__class__)s' % user }}", "{{ '%(__class__)s' | format(a=1) }}", "{{ '%s' % nope.__class__ }}",
    "{{ '%*d' % (1000000000, 1) }}", "{{ '{0.__class__}' | format(1) }}", "{{ ('{0.__cla' ~ 'ss__}').format('') }}",
]  # fmt: skip
_GLOBALS = [
    "{{ lipsum.__globals__ }}", "{{ lipsum.__globals__['os'].popen('id').read() }}",
    "{{ cycler.__init__.__globals__ }}", "{{ cycler('a').next.__globals__ }}", "{{ joiner.__init__.__globals__.os }}",
    "{{ namespace.__init__.__globals__ }}", "{{ namespace(a=1).__class__ }}", "{{ range.__class__ }}",
    "{{ range(1).__class__ }}", "{{ dict.__base__ }}", "{{ dict.fromkeys('ab') }}",
    "{{ dict(__class__=1).__class__ }}", "{{ now.__globals__ }}", "{{ now.__self__ }}", "{{ done.__code__ }}",
    "{{ timedelta.__class__ }}", "{{ timedelta(days=1).__class__ }}", "{{ (1 | to_datetime).__class__ }}",
    "{{ (1 | to_datetime).tzinfo }}", "{{ (1 | to_datetime).replace(year=1) }}",
    "{{ '2024-01-01' | to_datetime(format='%Z%z') }}", "{{ self }}", "{{ self.__init__.__globals__ }}",
    "{{ self._TemplateReference__context }}", "{{ context }}", "{{ environment }}", "{{ __builtins__ }}",
    "{{ __builtins__.open('/etc/passwd') }}", "{{ __import__('os') }}", "{{ globals() }}", "{{ locals() }}",
    "{{ vars() }}", "{{ getattr('', '__class__') }}", "{{ open('/etc/passwd') }}", "{{ eval('1') }}",
    "{{ exec('1') }}", "{{ type('') }}", "{{ object() }}", "{{ config }}", "{{ request.application.__globals__ }}",
    "{{ __functions__ }}", "{{ __loader__ }}", "{{ varargs }}", "{{ caller() }}", "{{ super() }}",
    "{{ super.__class__ }}",
]  # fmt: skip
_METHODS = [
    "{{ ''.join(user.__class__) }}", "{{ ''.join([user]) }}", "{{ ''.join(nope) }}", "{{ word.encode() }}",
    "{{ word.translate({104: user}) }}", "{{ word.maketrans('a', 'b') }}", "{{ word.__add__('x') }}",
    "{{ word.__format__('') }}", "{{ nums.append(user) }}", "{{ nums.sort() }}", "{{ nums.pop() }}",
    "{{ nums.__iter__() }}", "{{ user.update(a=1) }}", "{{ user.setdefault('x', 1) }}", "{{ user.pop('name') }}",
    "{{ user.fromkeys('ab') }}", "{{ user.get('name').__class__ }}", "{{ user.get.__class__ }}",
    "{{ user.keys().__class__ }}", "{{ user.keys().mapping }}", "{{ (1).to_bytes(2) }}", "{{ (1).real.__class__ }}",
    "{{ (1.5).as_integer_ratio() }}", "{{ (1.5).hex() }}", "{{ loop.__class__ }}", "{{ word.upper()() }}",
    "{{ user['get']('name') }}", "{{ nums[0]() }}", "{{ (word.upper)() }}", "{{ word.upper(*[1]) }}",
    "{{ word.split(**{'sep': user}) }}", "{{ word.upper(**user) }}",
]  # fmt: skip
_STATEMENTS = [
    "{% import 'os' as os %}{{ os }}", "{% from 'os' import system %}{{ system('id') }}",
    "{% include '/etc/passwd' %}", "{% extends 'x' %}",
    "{% macro m() %}{{ varargs.__class__ }}{% endmacro %}{{ m() }}",
    "{% macro m() %}x{% endmacro %}{{ m.__class__ }}", "{% call(x) y() %}{{ x }}{% endcall %}",
    "{% block b %}{{ self.b.__globals__ }}{% endblock %}", "{% filter attr('__class__') %}x{% endfilter %}",
    "{% with x = ''.__class__ %}{{ x }}{% endwith %}", "{% autoescape true %}{{ ''.__class__ }}{% endautoescape %}",
    "{% do nums.append(1) %}", "{% set x = ''.__class__ %}{{ x }}", "{% set x = nums %}{% set x.y = 1 %}{{ x }}",
    "{% set user.name = 'mallory' %}{{ user.name }}",
    "{% set ns = namespace() %}{% set ns.__class__ = 1 %}{{ ns.__class__ }}",
    "{% set ns = namespace(a=1) %}{{ ns.__init__.__globals__ }}",
    "{% for c in ''.__class__.__mro__ %}{{ c }}{% endfor %}", "{% for x in [1] %}{{ loop.__class__ }}{% endfor %}",
    "{% for x in [1] %}{{ loop._iterable }}{% endfor %}", "{% for x in [1] recursive %}{{ loop([2]) }}{% endfor %}",
    "{% for x in [1] %}{{ loop.cycle.__globals__ }}{% endfor %}",
    "{% for k in user %}{{ user[k].__class__ }}{% endfor %}", "{% if ''.__class__ %}x{% endif %}",
    "{% set x | attr('__class__') %}y{% endset %}{{ x }}", "{% for x.y in [1] %}{% endfor %}",
    "{% for user['name'] in [1] %}{% endfor %}", "{% debug %}", "{% trans %}x{% endtrans %}",
    "{% print(''.__class__) %}",
]  # fmt: skip
_ERRORS = [
    "{{ (1 / 0).__traceback__ }}", "{{ nope.x.__traceback__.tb_frame }}", "{{ [].index(1).__context__ }}",
    "{{ ('x' | int).__class__ }}", "{{ 'x' | fromjson }}", "{{ '{\"__class__\": 1}' | fromjson }}",
    "{{ ('{\"__class__\": 1}' | fromjson).__class__ }}", "{{ '!!python/object/apply:os.system [id]' | fromjson }}",
    "{{ 'gASVAA==' | b64decode }}", "{{ 'x' is match('(?P<__class__>x)') }}",
]  # fmt: skip

ESCAPES: list[str] = [*_WALKS, *_UNICODE, *_FILTERS, *_FORMATS, *_GLOBALS, *_METHODS, *_STATEMENTS, *_ERRORS]
